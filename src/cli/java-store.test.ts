import { copyFileSync, mkdtempSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readConfig, readTls } from '../server/index.ts';
import { javaStoreReader } from './jks.ts';

const certificates = resolve(import.meta.dirname, '../../test/certificates');
const ca = readFileSync(join(certificates, 'ca.cert.pem'), 'utf8');
const bare = (pem: string) => pem.replace(/\s/g, '');
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'drover-jks-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

async function tls(flags: Record<string, string>) {
  const config = readConfig({ flags });
  return readTls(config, await javaStoreReader(config));
}

const server = {
  'ssl.keyStore.location': join(certificates, 'server.jks'),
  'ssl.keyStore.password': 'changeit',
};
const withoutClients = { ...server, 'ssl.clientAuth': 'none' };

test('a key store of the JDK gives its key and certificates', async () => {
  const { key, cert } = await tls(withoutClients);

  expect(bare(String(key))).toBe(bare(readFileSync(join(certificates, 'server.key.pem'), 'utf8')));
  expect(bare(String(cert))).toBe(
    bare(readFileSync(join(certificates, 'server.cert.pem'), 'utf8')),
  );
});

test.each([
  ['ca.jks', 'changeit'],
  ['ca.jks', ''],
  ['ca.pkcs12.jks', 'changeit'],
])(
  'a trust store of the JDK, %s with the password %j, gives its certificates',
  async (name, password) => {
    const trusted = await tls({
      ...server,
      'ssl.trustStore.location': join(certificates, name),
      'ssl.trustStore.password': password,
    });

    expect(bare(String(trusted.ca))).toBe(bare(ca));
  },
);

test('what can not be read is refused in a sentence that names the file', async () => {
  const cut = join(folder, 'cut.jks');
  copyFileSync(server['ssl.keyStore.location'], cut);
  truncateSync(cut, 100);
  const wrong = () => tls({ ...withoutClients, 'ssl.keyStore.password': 'wrong' });
  const short = () => tls({ ...withoutClients, 'ssl.keyStore.location': cut });
  const keyless = () =>
    tls({ ...withoutClients, 'ssl.keyStore.location': join(certificates, 'ca.jks') });
  const untrusted = () =>
    tls({
      ...server,
      'ssl.trustStore.location': server['ssl.keyStore.location'],
      'ssl.trustStore.password': 'changeit',
    });
  const other = () => tls({ ...withoutClients, 'ssl.keyStore.type': 'BCFKS' });

  await expect(wrong()).rejects.toThrow(
    /server\.jks can't be read .*: the password is wrong, or missing$/,
  );
  await expect(short()).rejects.toThrow(
    /cut\.jks can't be read as a Java key store: it is damaged/,
  );
  await expect(keyless()).rejects.toThrow(/ca\.jks holds no private key$/);
  await expect(untrusted()).rejects.toThrow(/server\.jks holds no certificate that is trusted$/);
  await expect(other()).rejects.toThrow(
    /is of type BCFKS, which only Java reads; convert it with: keytool/,
  );
});

test('what reads them is not loaded where none is named', async () => {
  expect(
    await javaStoreReader(readConfig({ flags: { 'ssl.keyStore.location': 'x.pem' } })),
  ).toBeUndefined();
});
