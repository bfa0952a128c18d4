/**
 * Certificates for tests of TLS, as PEM text. make.ts made the files and says what each is for.
 */
import { readFileSync } from 'node:fs';

export interface Pair {
  readonly cert: string;
  readonly key: string;
}

export const certificates = {
  ca: read('ca.cert'),
  server: pair('server'),
  client: pair('client'),
  wrongName: pair('wrong-name'),
  expired: pair('expired'),
  otherCa: read('other-ca.cert'),
  otherServer: pair('other-server'),
  otherClient: pair('other-client'),
} as const;

function pair(name: string): Pair {
  return { cert: read(`${name}.cert`), key: read(`${name}.key`) };
}

function read(name: string): string {
  return readFileSync(new URL(`${name}.pem`, import.meta.url), 'utf8');
}
