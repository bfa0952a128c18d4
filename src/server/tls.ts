/**
 * Keys and certificates from files, as `ssl.*` names them, for Node: PEM, PKCS#12 for the key, and Java's
 * key stores where the caller can read them. Read anew whenever certificates are reloaded. No message shows
 * what is in a file.
 */

import { X509Certificate } from 'node:crypto';
import { createSecureContext, getCiphers, type TlsOptions } from 'node:tls';
import { readPlainFileSync } from '../support/index.ts';
import { ConfigError, type ServerConfig } from './config.ts';

const fileKeys = [
  'ssl.keyStore.location',
  'ssl.keyStore.passwordPath',
  'ssl.trustStore.location',
  'ssl.trustStore.passwordPath',
] as const;

/** What is in a store of Java's (JKS, or PKCS#12 with trusted certificates), as PEM. Throws a `ConfigError`. */
export type ReadJavaStore = (bytes: Buffer, password: string, file: string) => JavaStore;

export interface JavaStore {
  readonly keys: readonly { readonly key: string; readonly cert: string }[];
  /** Certificates of authorities. */
  readonly trusted: readonly string[];
}

/** The files that `readTls` reads. */
export function tlsFiles(config: ServerConfig): string[] {
  return fileKeys.flatMap((key) => config.get(key) || []);
}

/** Whether a key store or trust store is named that takes a `ReadJavaStore`. */
export function namesJavaStore(config: ServerConfig): boolean {
  const keyStore = config.get('ssl.keyStore.location') ?? '';
  const trustStore = config.get('ssl.trustStore.location') ?? '';
  return (
    storeType(keyStore, config.get('ssl.keyStore.type')) === 'JKS' ||
    ['JKS', 'PKCS12'].includes(storeType(trustStore, config.get('ssl.trustStore.type')))
  );
}

export function readTls(config: ServerConfig, readJavaStore?: ReadJavaStore): TlsOptions {
  const keyStore = config.get('ssl.keyStore.location');
  if (keyStore === undefined) {
    throw new ConfigError('secureClientPort needs ssl.keyStore.location: key and certificates');
  }
  const passphrase = passwordOf(config, 'ssl.keyStore');
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
  const ca = trustStore === undefined ? undefined : trusted(config, trustStore, readJavaStore);
  const options = {
    ...keyAndCertificates(config, keyStore, passphrase, readJavaStore),
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

/** As it is said, or else told by the file's name. */
function storeType(file: string, said: string | undefined): string {
  const bySuffix = /\.(p12|pfx)$/i.test(file) ? 'PKCS12' : /\.jks$/i.test(file) ? 'JKS' : 'PEM';
  return said === undefined || said === '' ? bySuffix : said.toUpperCase();
}

function unreadable(file: string, type: string, key: string): ConfigError {
  return new ConfigError(
    `${key} ${file} is of type ${type}, which only Java reads; convert it with: ` +
      `keytool -importkeystore -srckeystore ${file} -destkeystore store.p12 -deststoretype PKCS12 && ` +
      'openssl pkcs12 -in store.p12 -nodes -out store.pem, and name store.pem',
  );
}

/** How JKS begins. What JDK 9 and later call a key store by default is PKCS#12, whatever its name. */
const jksMagic = Buffer.from('feedfeed', 'hex');

function readStore(file: string, key: string): Buffer {
  try {
    return readPlainFileSync(file);
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error';
    throw new ConfigError(`${key} ${file} can't be read (${code})`, { cause });
  }
}

function keyAndCertificates(
  config: ServerConfig,
  file: string,
  password = '',
  readJavaStore?: ReadJavaStore,
): TlsOptions {
  const key = 'ssl.keyStore.location';
  const bytes = readStore(file, key);
  const type = storeType(file, config.get('ssl.keyStore.type'));
  if (type === 'JKS' && bytes.subarray(0, 4).equals(jksMagic)) {
    if (readJavaStore === undefined) throw unreadable(file, type, key);
    const [first] = readJavaStore(bytes, password, `${key} ${file}`).keys;
    if (first === undefined) throw new ConfigError(`${key} ${file} holds no private key`);
    return first;
  }
  if (type === 'PKCS12' || type === 'JKS') return { pfx: bytes };
  if (type !== 'PEM') throw unreadable(file, type, key);
  const text = bytes.toString('utf8');
  if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text) || !text.includes('BEGIN CERTIFICATE')) {
    throw new ConfigError(`${key} ${file} has to hold a private key and its certificates in PEM`);
  }
  return { key: text, cert: text };
}

function trusted(config: ServerConfig, file: string, readJavaStore?: ReadJavaStore): string {
  const key = 'ssl.trustStore.location';
  const type = storeType(file, config.get('ssl.trustStore.type'));
  const bytes = readStore(file, key);
  if (type === 'JKS' || type === 'PKCS12') {
    if (readJavaStore === undefined) throw unreadable(file, type, key);
    const password = passwordOf(config, 'ssl.trustStore') ?? '';
    const { trusted: certificates } = readJavaStore(bytes, password, `${key} ${file}`);
    if (certificates.length > 0) return certificates.join('\n');
    throw new ConfigError(`${key} ${file} holds no certificate that is trusted`);
  }
  if (type !== 'PEM') throw unreadable(file, type, key);
  const text = bytes.toString('utf8');
  if (!text.includes('BEGIN CERTIFICATE')) {
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

function passwordOf(
  config: ServerConfig,
  store: 'ssl.keyStore' | 'ssl.trustStore',
): string | undefined {
  const path = config.get(`${store}.passwordPath`);
  if (path === undefined || path === '') return config.get(`${store}.password`) || undefined;
  // Blanks may be part of it; the end of the line that an editor adds is not.
  return readStore(path, `${store}.passwordPath`)
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
