/**
 * Keys and certificates from files, as `ssl.*` names them, for Node: PEM, or PKCS#12 for the key. Read
 * anew whenever certificates are reloaded. No message shows what is in a file.
 */

import { X509Certificate } from 'node:crypto';
import { createSecureContext, getCiphers, type TlsOptions } from 'node:tls';
import { readPlainFileSync } from '../support/index.ts';
import { ConfigError, type ServerConfig } from './config.ts';

const fileKeys = [
  'ssl.keyStore.location',
  'ssl.keyStore.passwordPath',
  'ssl.trustStore.location',
] as const;

/** The files that `readTls` reads. */
export function tlsFiles(config: ServerConfig): string[] {
  return fileKeys.flatMap((key) => config.get(key) || []);
}

export function readTls(config: ServerConfig): TlsOptions {
  const keyStore = config.get('ssl.keyStore.location');
  if (keyStore === undefined) {
    throw new ConfigError('secureClientPort needs ssl.keyStore.location: key and certificates');
  }
  const passphrase = keyPassword(config);
  const trustStore = config.get('ssl.trustStore.location');
  const clientAuth = config.must('ssl.clientAuth').toLowerCase();
  if (!['need', 'want', 'none'].includes(clientAuth)) {
    throw new ConfigError(`ssl.clientAuth has to be need, want or none, and is ${clientAuth}`);
  }
  if (clientAuth === 'need' && trustStore === undefined) {
    throw new ConfigError(
      'ssl.clientAuth=need wants ssl.trustStore.location: who may sign certificates of clients; without, set ssl.clientAuth=none',
    );
  }
  const ca = trustStore === undefined ? undefined : trusted(config, trustStore);
  const options = {
    ...keyAndCertificates(config, keyStore),
    ...(passphrase === undefined ? {} : { passphrase }),
    ...(ca === undefined ? {} : { ca }),
    requestCert: clientAuth !== 'none',
    rejectUnauthorized: clientAuth === 'need',
    ...versions(config.get('ssl.enabledProtocols')),
    ...ciphers(config.get('ssl.ciphersuites')),
  };
  proveUsable(options, keyStore);
  return options;
}

/** What OpenSSL says of the mistakes that people make. */
const troubles: readonly [said: RegExp, why: string][] = [
  [/bad decrypt|mac verify failure/, 'ssl.keyStore.password is wrong, or missing'],
  [/key values mismatch/, 'the key is not that of the first certificate'],
  [
    /Unsupported PKCS12/,
    'its encryption is too old; make a new one: openssl pkcs12 -legacy -in old.p12 -nodes -out key.pem, and name key.pem',
  ],
];

/** By what would be done with it: a server that can't speak must not be found out by its first client. */
function proveUsable(options: TlsOptions, keyStore: string): void {
  try {
    createSecureContext(options);
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === 'ERR_SSL_NO_CIPHER_MATCH') {
      throw new ConfigError('ssl.ciphersuites names none that OpenSSL has', { cause });
    }
    const why = troubles.find(([said]) => said.test(message))?.[1] ?? message;
    throw new ConfigError(`ssl.keyStore.location ${keyStore} can't be used: ${why}`, { cause });
  }
}

type StoreType = 'PEM' | 'PKCS12';

function storeType(file: string, said: string | undefined, key: string): StoreType {
  const bySuffix = /\.(p12|pfx)$/i.test(file) ? 'PKCS12' : /\.jks$/i.test(file) ? 'JKS' : 'PEM';
  const type = said === undefined || said === '' ? bySuffix : said.toUpperCase();
  if (type === 'PEM' || type === 'PKCS12') return type;
  throw new ConfigError(
    `${key} ${file} is of type ${type}, which only Java reads; convert it with: ` +
      `keytool -importkeystore -srckeystore ${file} -destkeystore store.p12 -deststoretype PKCS12 && ` +
      'openssl pkcs12 -in store.p12 -nodes -out store.pem, and name store.pem',
  );
}

function readStore(file: string, key: string): Buffer {
  try {
    return readPlainFileSync(file);
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error';
    throw new ConfigError(`${key} ${file} can't be read (${code})`, { cause });
  }
}

function keyAndCertificates(config: ServerConfig, file: string): TlsOptions {
  const key = 'ssl.keyStore.location';
  const bytes = readStore(file, key);
  if (storeType(file, config.get('ssl.keyStore.type'), key) === 'PKCS12') return { pfx: bytes };
  const text = bytes.toString('utf8');
  if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text) || !text.includes('BEGIN CERTIFICATE')) {
    throw new ConfigError(`${key} ${file} has to hold a private key and its certificates in PEM`);
  }
  return { key: text, cert: text };
}

function trusted(config: ServerConfig, file: string): string {
  const key = 'ssl.trustStore.location';
  const type = storeType(file, config.get('ssl.trustStore.type'), key);
  const text = readStore(file, key).toString('utf8');
  if (type === 'PKCS12' || !text.includes('BEGIN CERTIFICATE')) {
    throw new ConfigError(
      `${key} ${file} has to hold certificates in PEM; from PKCS#12: openssl pkcs12 -in ${file} -nokeys -out trust.pem`,
    );
  }
  for (const block of text.match(certificateBlocks) ?? ['']) {
    try {
      new X509Certificate(block);
    } catch (cause) {
      throw new ConfigError(`${key} ${file} holds a certificate that can't be read`, { cause });
    }
  }
  return text;
}

const certificateBlocks =
  /-----BEGIN CERTIFICATE-----[\s\S]*?(?:-----END CERTIFICATE-----|(?=-----BEGIN)|$)/g;

function keyPassword(config: ServerConfig): string | undefined {
  const path = config.get('ssl.keyStore.passwordPath');
  if (path === undefined || path === '') return config.get('ssl.keyStore.password') || undefined;
  // Blanks may be part of it; the end of the line that an editor adds is not.
  return readStore(path, 'ssl.keyStore.passwordPath')
    .toString('utf8')
    .replace(/\r?\n$/, '');
}

/** 1.2 and up, whatever a file says: the older ones are broken. */
function versions(said: string | undefined): TlsOptions {
  if (said === undefined) return { minVersion: 'TLSv1.2' };
  const named = said.split(',').map((each) => each.trim());
  const known = (['TLSv1.2', 'TLSv1.3'] as const).filter((version) => named.includes(version));
  if (known.length === 0) {
    throw new ConfigError(`ssl.enabledProtocols names neither TLSv1.2 nor TLSv1.3: ${said}`);
  }
  return { minVersion: known[0]!, maxVersion: known.at(-1)! };
}

function ciphers(said: string | undefined): TlsOptions {
  if (said === undefined || said === '') return {};
  const named = said.split(',').map((each) => openSslName(each.trim()));
  const needsGroup = named.some((name) => name.startsWith('DHE-'));
  return { ciphers: named.join(':'), ...(needsGroup ? { dhparam: 'auto' } : {}) };
}

/**
 * Of Java's names of TLS 1.2: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is ECDHE-RSA-AES128-GCM-SHA256. OpenSSL
 * names neither the exchange of keys by RSA, nor CBC with AES, nor the hash that always goes with ChaCha20.
 * One that it has not would be left out without a word.
 */
function openSslName(java: string): string {
  const [, exchange, cipher] = /^(?:TLS|SSL)_(\w+?)_WITH_(\w+)$/.exec(java) ?? [];
  if (exchange === undefined || cipher === undefined) return java;
  const name = `${exchange === 'RSA' ? '' : `${exchange}-`}${cipher}`
    .replace(/(AES|CAMELLIA|ARIA)_(\d+)/, '$1$2')
    .replace(/(?<=(AES|CAMELLIA)\d+)_CBC/, '')
    .replace(/(?<=CHACHA20_POLY1305)_SHA256$/, '')
    .replace(/_/g, '-');
  if (getCiphers().includes(name.toLowerCase())) return name;
  throw new ConfigError(`ssl.ciphersuites: ${java} is none that OpenSSL has`);
}
