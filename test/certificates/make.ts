/**
 * Makes the certificates of this folder anew: `npx tsx test/certificates/make.ts`. Needs `openssl` and `keytool`.
 *
 * Out, each as <name>.cert.pem and, but for the authorities, <name>.key.pem (PKCS #8, P-256):
 *
 *   ca            signs all that follow and is what a client should trust
 *   server        for localhost, 127.0.0.1 and ::1
 *   client        for CN=drover-client; what a client shows where the server asks for one
 *   wrong-name    a server's, for example.invalid
 *   expired       a server's for localhost, which ended in 2001
 *   other-ca      trusted by nobody; signs the two below
 *   other-server  like server
 *   other-client  like client
 *
 * And, for the tests of Java's key stores, with the password `changeit`, made by the JDK's keytool:
 *
 *   server.jks    server, as JKS
 *   ca.jks        ca, as a trust store in JKS
 *   ca.pkcs12.jks the same as JDK 9 and later make it by default: PKCS#12
 *
 * They are good for a hundred years and are committed, so that tests need neither openssl nor luck with
 * the date. The keys are public and protect nothing.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const localhost = 'DNS:localhost,IP:127.0.0.1,IP:::1';
const always = { from: '20000101000000Z', to: '21250101000000Z' };
const longAgo = { from: '20000101000000Z', to: '20010101000000Z' };

interface Leaf {
  readonly name: string;
  readonly issuer: string;
  readonly subject: string;
  readonly usage: 'serverAuth' | 'clientAuth';
  readonly altNames?: string;
  readonly validity?: typeof always;
}

// biome-ignore format: a table is read down its columns
const leaves: Leaf[] = [
  { name: 'server',       issuer: 'ca',       subject: 'localhost',       usage: 'serverAuth', altNames: localhost },
  { name: 'client',       issuer: 'ca',       subject: 'drover-client',   usage: 'clientAuth' },
  { name: 'wrong-name',   issuer: 'ca',       subject: 'example.invalid', usage: 'serverAuth', altNames: 'DNS:example.invalid' },
  { name: 'expired',      issuer: 'ca',       subject: 'localhost',       usage: 'serverAuth', altNames: localhost, validity: longAgo },
  { name: 'other-server', issuer: 'other-ca', subject: 'localhost',       usage: 'serverAuth', altNames: localhost },
  { name: 'other-client', issuer: 'other-ca', subject: 'drover-client',   usage: 'clientAuth' },
];

const scratch = mkdtempSync(join(tmpdir(), 'drover-certificates-'));
try {
  for (const name of ['ca', 'other-ca']) makeAuthority(name);
  for (const leaf of leaves) makeLeaf(leaf);
  makeJavaStores();
} finally {
  rmSync(scratch, { recursive: true });
}

function makeJavaStores(): void {
  const store = (name: string) => join(here, `${name}.jks`);
  const password = 'changeit';
  const pkcs12 = join(scratch, 'server.p12');
  const pair = ['-inkey', keyOf('server'), '-in', certOf('server'), '-name', 'server'];
  openssl('pkcs12', '-export', ...pair, '-passout', `pass:${password}`, '-out', pkcs12);
  for (const name of ['server', 'ca', 'ca.pkcs12']) rmSync(store(name), { force: true });
  keytool(
    ...['-importkeystore', '-srckeystore', pkcs12, '-srcstoretype', 'PKCS12'],
    ...['-srcstorepass', password, '-destkeystore', store('server'), '-deststoretype', 'JKS'],
    ...['-deststorepass', password],
  );
  for (const [name, type] of [
    ['ca', 'JKS'],
    ['ca.pkcs12', 'PKCS12'],
  ] as const) {
    const from = ['-importcert', '-alias', 'ca', '-file', certOf('ca')];
    keytool(...from, '-keystore', store(name), '-storetype', type, '-storepass', password);
  }
}

function keytool(...args: readonly string[]): void {
  execFileSync('keytool', [...args, '-noprompt'], { stdio: 'pipe' });
}

function makeAuthority(name: string): void {
  makeRequest(name, `drover test ${name}`);
  const extensions = 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n';
  sign(name, name, always, extensions, ['-selfsign']);
}

function makeLeaf({ name, issuer, subject, usage, altNames, validity = always }: Leaf): void {
  makeRequest(name, subject);
  const extensions = [
    'basicConstraints=critical,CA:FALSE',
    'keyUsage=critical,digitalSignature',
    `extendedKeyUsage=${usage}`,
    ...(altNames ? [`subjectAltName=${altNames}`] : []),
  ];
  sign(name, issuer, validity, extensions.join('\n'));
}

function makeRequest(name: string, subject: string): void {
  const curve = ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256'];
  openssl('genpkey', ...curve, '-out', keyOf(name));
  openssl('req', '-new', '-key', keyOf(name), '-subj', `/CN=${subject}`, '-out', request(name));
}

/** By `openssl ca`: the simpler `x509 -req` can't make a certificate that has ended already. */
function sign(
  name: string,
  issuer: string,
  { from, to }: typeof always,
  extensions: string,
  more: string[] = [],
): void {
  const database = join(scratch, `${name}.database`);
  writeFileSync(database, '');
  const config = join(scratch, `${name}.cnf`);
  writeFileSync(
    config,
    `[ca]\ndefault_ca=it\n[it]\ndatabase=${database}\nnew_certs_dir=${scratch}\nrand_serial=yes\n` +
      `default_md=sha256\npolicy=any\n[any]\ncommonName=supplied\n[extensions]\n${extensions}\n`,
  );
  const by = ['-keyfile', keyOf(issuer), '-cert', certOf(issuer)];
  openssl(
    ...['ca', '-batch', '-notext', '-config', config, '-extensions', 'extensions'],
    ...['-startdate', from, '-enddate', to, '-in', request(name), '-out', certOf(name)],
    ...(more.length > 0 ? ['-keyfile', keyOf(issuer), ...more] : by),
  );
}

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] });
}

function keyOf(name: string): string {
  // Nobody signs with the authorities again: the next run makes new ones.
  return join(name.endsWith('ca') ? scratch : here, `${name}.key.pem`);
}

function certOf(name: string): string {
  return join(here, `${name}.cert.pem`);
}

function request(name: string): string {
  return join(scratch, `${name}.request.pem`);
}
