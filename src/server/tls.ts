/**
 * Keys and certificates from files, as `ssl.*` names them, for Node: PEM, or PKCS#12 for the key. Read
 * anew whenever certificates are reloaded. No message shows what is in a file.
 */

import { readFileSync } from 'node:fs';
import type { TlsOptions } from 'node:tls';
import { ConfigError, type ServerConfig } from './config.ts';

/** The files that `readTls` reads. */
export function tlsFiles(config: ServerConfig): string[] {
  return [config.get('ssl.keyStore.location'), config.get('ssl.trustStore.location')].filter(
    (file) => file !== undefined,
  );
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
  return {
    ...keyAndCertificates(config, keyStore),
    ...(passphrase === undefined ? {} : { passphrase }),
    ...(ca === undefined ? {} : { ca }),
    requestCert: clientAuth !== 'none',
    rejectUnauthorized: clientAuth === 'need',
    ...versions(config.get('ssl.enabledProtocols')),
    ...ciphers(config.get('ssl.ciphersuites')),
  };
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
    return readFileSync(file);
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
  return text;
}

function keyPassword(config: ServerConfig): string | undefined {
  const path = config.get('ssl.keyStore.passwordPath');
  if (path === undefined || path === '') return config.get('ssl.keyStore.password') || undefined;
  return readStore(path, 'ssl.keyStore.passwordPath').toString('utf8').trim();
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

/** Java's names of TLS 1.2: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is ECDHE-RSA-AES128-GCM-SHA256. */
function ciphers(said: string | undefined): TlsOptions {
  if (said === undefined || said === '') return {};
  const named = said.split(',').map((each) => {
    const name = each.trim();
    if (!name.includes('_WITH_')) return name;
    return name
      .replace(/^TLS_/, '')
      .replace('_WITH_', '-')
      .replace(/AES_(\d+)/, 'AES$1')
      .replace(/_/g, '-');
  });
  return { ciphers: named.join(':') };
}
