import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readConfig } from './config.ts';
import { readTls, tlsFiles } from './tls.ts';

const pem = (name: string) =>
  readFileSync(resolve(import.meta.dirname, '../../test/certificates', `${name}.pem`), 'utf8');
const ca = pem('ca.cert');
const server = { key: pem('server.key'), cert: pem('server.cert') };
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'drover-tls-'));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function tls(keyStore: string, more: Record<string, string> = {}, trustStore = ca) {
  writeFileSync(join(folder, 'key.pem'), keyStore);
  writeFileSync(join(folder, 'trust.pem'), trustStore);
  const flags = {
    'ssl.keyStore.location': join(folder, 'key.pem'),
    'ssl.trustStore.location': join(folder, 'trust.pem'),
    ...more,
  };
  return readTls(readConfig({ flags }));
}

const whole = server.key + server.cert;

test('a key that is not of its certificate is told in a sentence', () => {
  expect(() => tls(pem('other-server.key') + server.cert)).toThrow(
    /^ssl\.keyStore\.location .* can't be used: the key is not that of the first certificate$/,
  );
});

test('so is a password that is wrong or missing; blanks around one in a file are part of it', () => {
  const { privateKey } = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: ' pw ' },
  });
  const passwordPath = join(folder, 'password');
  writeFileSync(passwordPath, ' pw \n');
  const why = 'ssl.keyStore.password is wrong, or missing';

  expect(() => tls(privateKey + server.cert)).toThrow(why);
  expect(() => tls(privateKey + server.cert, { 'ssl.keyStore.password': 'pw' })).toThrow(why);
  // It can be read, and belongs to no certificate here.
  expect(() =>
    tls(privateKey + server.cert, { 'ssl.keyStore.passwordPath': passwordPath }),
  ).toThrow('the key is not that');
});

test('a trust store with a certificate that is none is refused', () => {
  expect(() => tls(whole, {}, `${ca}\n-----BEGIN CERTIFICATE-----\nAAAA\n`)).toThrow(
    "holds a certificate that can't be read",
  );
});

test.each([
  ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
  ['TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256', 'ECDHE-ECDSA-CHACHA20-POLY1305'],
  ['TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384', 'ECDHE-RSA-AES256-SHA384'],
  ['TLS_RSA_WITH_AES_128_GCM_SHA256', 'AES128-GCM-SHA256'],
  ['SSL_RSA_WITH_AES_128_CBC_SHA', 'AES128-SHA'],
  ['TLS_AES_256_GCM_SHA384, HIGH', 'TLS_AES_256_GCM_SHA384:HIGH'],
])("Java's %s is OpenSSL's %s", (java, openSsl) => {
  expect(tls(whole, { 'ssl.ciphersuites': java }).ciphers).toBe(openSsl);
});

test('a cipher that is not there is refused, and never left out', () => {
  const some = 'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_RC4_128_MD5';

  expect(() => tls(whole, { 'ssl.ciphersuites': some })).toThrow('RC4_128_MD5 is none that');
  expect(() => tls(whole, { 'ssl.ciphersuites': 'NOSUCH' })).toThrow('names none that OpenSSL has');
});

test('exchanges by Diffie and Hellman have a group', () => {
  const dhe = 'TLS_DHE_RSA_WITH_AES_128_GCM_SHA256';

  expect(tls(whole, { 'ssl.ciphersuites': dhe }).dhparam).toBe('auto');
});

test('every file that is read is one whose change is noticed', () => {
  const files = {
    ...{ 'ssl.keyStore.location': 'k', 'ssl.keyStore.passwordPath': 'p' },
    'ssl.trustStore.location': 't',
  };

  expect(tlsFiles(readConfig({ flags: files }))).toEqual(['k', 'p', 't']);
  const bare = { 'ssl.keyStore.location': 'k', 'ssl.keyStore.passwordPath': '' };
  expect(tlsFiles(readConfig({ flags: bare }))).toEqual(['k']);
});
