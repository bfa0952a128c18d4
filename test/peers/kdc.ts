/**
 * A Kerberos KDC of MIT's, for a test: one realm in a folder of its own, on loopback, gone with it.
 *
 * In: principals. Out: a configuration for clients and servers, a keytab for each principal, ticket
 * caches. It needs Debian's `krb5-kdc` and `krb5-user`, or the same programs from elsewhere, and the npm
 * package `kerberos`, which is compiled against `libkrb5-dev`; `missingKerberos` says what is not here.
 */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KerberosOptions } from '../../src/client/index.ts';
import { freePort } from './zookeeper.ts';

export const realm = 'DROVER.TEST';

const packages = new URL('../../.peers/kerberos/package.json', import.meta.url);
const folders = ['/usr/sbin', '/usr/bin', '/usr/local/sbin', '/usr/local/bin'];
const programs = ['krb5kdc', 'kdb5_util', 'kadmin.local', 'kinit'];
const readyTimeoutMs = 20_000;

const where = (program: string) =>
  folders.map((folder) => join(folder, program)).find((path) => existsSync(path));

/** A sentence on how to get what is not here. */
export function missingKerberos(): string | undefined {
  const absent = programs.filter((program) => where(program) === undefined);
  if (absent.length > 0) {
    return `${absent.join(', ')} not found: apt-get install krb5-kdc krb5-admin-server krb5-user`;
  }
  try {
    kerberosPackage();
    return undefined;
  } catch {
    return 'the package kerberos is not there: apt-get install libkrb5-dev, and npm install --prefix .peers/kerberos kerberos';
  }
}

export function kerberosPackage(): NonNullable<KerberosOptions['module']> {
  return createRequire(packages)('kerberos');
}

export class Kdc implements AsyncDisposable {
  readonly #folder: string;
  readonly #process: ChildProcess;
  readonly config: string;

  private constructor(folder: string, config: string, process: ChildProcess) {
    this.#folder = folder;
    this.config = config;
    this.#process = process;
  }

  static async start(principals: readonly string[]): Promise<Kdc> {
    const folder = mkdtempSync(join(tmpdir(), 'drover-kdc-'));
    const port = await freePort();
    const config = join(folder, 'krb5.conf');
    const profile = join(folder, 'kdc.conf');
    writeFileSync(config, clientConfig(port));
    writeFileSync(profile, kdcConfig(port, folder));
    const env = { ...process.env, KRB5_CONFIG: config, KRB5_KDC_PROFILE: profile };
    const run = (program: string, args: string[]) =>
      execFileSync(where(program)!, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    run('kdb5_util', ['create', '-s', '-r', realm, '-P', 'master']);
    for (const principal of principals) {
      run('kadmin.local', ['-r', realm, '-q', `addprinc -randkey ${principal}`]);
      const file = keytabIn(folder, principal);
      run('kadmin.local', ['-r', realm, '-q', `ktadd -k ${file} ${principal}`]);
    }
    const kdc = spawn(where('krb5kdc')!, ['-n'], { env, stdio: 'ignore' });
    const started = new Kdc(folder, config, kdc);
    try {
      await listening(port, kdc);
      return started;
    } catch (error) {
      await started[Symbol.asyncDispose]();
      throw error;
    }
  }

  keytab(principal: string): string {
    return keytabIn(this.#folder, principal);
  }

  /** A ticket for the principal, in a cache of its own: what KRB5CCNAME wants. */
  ticket(principal: string): string {
    const cache = `FILE:${join(this.#folder, `cache-${principal}`)}`;
    const env = { ...process.env, KRB5_CONFIG: this.config, KRB5CCNAME: cache };
    execFileSync(where('kinit')!, ['-k', '-t', this.keytab(principal), principal], { env });
    return cache;
  }

  /** What a Java server of this principal is told to log in with. */
  jaas(principal: string): string {
    const file = join(this.#folder, 'jaas.conf');
    writeFileSync(
      file,
      `Server {
  com.sun.security.auth.module.Krb5LoginModule required
  useKeyTab=true storeKey=true useTicketCache=false
  keyTab="${this.keytab(principal)}" principal="${principal}@${realm}";
};
`,
    );
    return file;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const ended = once(this.#process, 'exit');
      this.#process.kill('SIGTERM');
      await ended;
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

const keytabIn = (folder: string, principal: string) =>
  join(folder, `${principal.replace('/', '-')}.keytab`);

/** Nothing is looked up: names are what they are, and the KDC is on this machine. */
const clientConfig = (port: number) => `[libdefaults]
 default_realm = ${realm}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 rdns = false
 dns_canonicalize_hostname = false
 udp_preference_limit = 1
[realms]
 ${realm} = {
  kdc = 127.0.0.1:${port}
 }
[domain_realm]
 localhost = ${realm}
`;

const kdcConfig = (port: number, folder: string) => `[kdcdefaults]
 kdc_listen = 127.0.0.1:${port}
 kdc_tcp_listen = 127.0.0.1:${port}
[realms]
 ${realm} = {
  database_name = ${join(folder, 'principal')}
  key_stash_file = ${join(folder, 'stash')}
  supported_enctypes = aes256-cts-hmac-sha1-96:normal
 }
`;

async function listening(port: number, kdc: ChildProcess): Promise<void> {
  const deadlineMs = performance.now() + readyTimeoutMs;
  for (;;) {
    if (kdc.exitCode !== null) throw new Error(`krb5kdc ended with ${kdc.exitCode}`);
    const socket = connect(port, '127.0.0.1');
    const isUp = await new Promise((done) => {
      socket.once('connect', () => done(true)).once('error', () => done(false));
    });
    socket.destroy();
    if (isUp) return;
    if (performance.now() > deadlineMs) throw new Error('krb5kdc does not listen');
    await new Promise((done) => setTimeout(done, 50));
  }
}
