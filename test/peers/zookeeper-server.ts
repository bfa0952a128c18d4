/**
 * A real Apache ZooKeeper server, started for a test and gone after it.
 *
 * In: a peer that findZooKeepers() found, and what its zoo.cfg should say. Out: a server on 127.0.0.1 that
 * answers, with its data in a folder of its own. One folder holds it all:
 *
 *   zoo.cfg   logback.xml   jaas.conf   *.pem   zookeeper.out   data/version-2/{log,snapshot}.<zxid>
 *
 * A server counts as started once it answers four-letter words and names that data folder, so that it isn't
 * somebody else's server who was given the same port, and once its TLS port is open, which comes later.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { certificates } from '../certificates/certificates.ts';
import { fourLetterWord } from './four-letter-word.ts';
import { freePort } from './free-port.ts';
import { Jvm } from './jvm.ts';
import type { ZooKeeperPeer } from './zookeeper-fetch.ts';

export interface ApacheOptions {
  /** More lines for zoo.cfg, or others in place of ours. */
  readonly config?: Record<string, string>;
  /** More flags for the JVM; a later flag wins over an earlier one, so these win over ours. */
  readonly jvm?: string[];
  /** Keeps everything in this folder. Without it, a temporary one that goes with the server. */
  readonly dir?: string;
  readonly port?: number;
  readonly tickTimeMs?: number;
  /** Adds a TLS port. Clients need no certificate unless `config` sets `ssl.clientAuth=need`. */
  readonly tls?: boolean;
  /** Accepts SASL DIGEST-MD5 from these users, by password. */
  readonly sasl?: { readonly users: Record<string, string> };
}

/** What a server is made of. Made anew when a port turns out to be taken. */
export interface Plan {
  readonly peer: ZooKeeperPeer;
  readonly dir: string;
  readonly port: number;
  readonly securePort?: number;
  readonly config: Record<string, string>;
  readonly jvm: string[];
}

const startTimeoutMs = 60_000;
const pollMs = 50;
const portAttempts = 5;
const tailBytes = 16_384;

export async function startApache(
  peer: ZooKeeperPeer,
  options: ApacheOptions = {},
): Promise<ApacheServer> {
  const dir = options.dir ?? temporaryFolder();
  const isTemporary = options.dir === undefined;
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort());
    const securePort = options.tls ? await freePort() : undefined;
    const config = { clientPort: String(port), clientPortAddress: '127.0.0.1' };
    const server = new ApacheServer(
      plan({ peer, dir, port, securePort, config }, options),
      isTemporary,
    );
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.kill();
      if (attempt < portAttempts && options.port === undefined && server.lostItsPort) continue;
      if (isTemporary) rmSync(dir, { recursive: true, force: true });
      throw error;
    }
  }
}

/** Gone at the latest when this process is, unless that is killed. */
export function temporaryFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'drover-zookeeper-'));
  if (temporaryFolders.length === 0) process.on('exit', removeTemporaryFolders);
  temporaryFolders.push(dir);
  return dir;
}

const temporaryFolders: string[] = [];

function removeTemporaryFolders(): void {
  for (const dir of temporaryFolders) rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
}

/** Adds to the part that only the caller knows what all servers have in common, and what was asked for. */
export function plan(
  part: Omit<Plan, 'jvm' | 'securePort'> & { securePort?: number | undefined },
  options: ApacheOptions,
): Plan {
  const { peer, dir, port, securePort } = part;
  const secure = securePort === undefined ? {} : { securePort };
  const config = {
    dataDir: join(dir, 'data'),
    tickTime: String(options.tickTimeMs ?? 2_000),
    initLimit: '10',
    syncLimit: '5',
    maxClientCnxns: '0',
    'admin.enableServer': 'false',
    '4lw.commands.whitelist': '*',
    ...part.config,
    ...(securePort === undefined ? {} : tlsConfig(dir, securePort)),
    ...(options.sasl ? { 'authProvider.sasl': `${auth}.SASLAuthenticationProvider` } : {}),
    ...options.config,
  };
  mkdirSync(config.dataDir, { recursive: true });
  if (securePort !== undefined) writeCertificates(dir);
  if (options.sasl) writeFileSync(join(dir, 'jaas.conf'), jaas(options.sasl.users));
  const login = `-Djava.security.auth.login.config=${join(dir, 'jaas.conf')}`;
  const jvm = [...jvmFlags(dir), ...(options.sasl ? [login] : []), ...(options.jvm ?? [])];
  return { peer, dir, port, ...secure, config, jvm };
}

const auth = 'org.apache.zookeeper.server.auth';

/** Short-lived and many on one machine: quick to start matters more than quick in the long run. */
function jvmFlags(dir: string): string[] {
  writeFileSync(join(dir, 'logback.xml'), logback);
  return [
    '-Xmx512m',
    '-Xshare:auto',
    '-XX:TieredStopAtLevel=1',
    '-XX:+UseSerialGC',
    '-XX:-UsePerfData',
    '-Dzookeeper.extendedTypesEnabled=true',
    // Whoever authenticates as super:test by digest may do anything.
    '-Dzookeeper.DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU=',
    // Debian and our pom.xml log by slf4j-simple, Apache's own release by logback.
    '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
    `-Dlogback.configurationFile=${join(dir, 'logback.xml')}`,
  ];
}

const logback = `<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d [%t] %p %c - %m%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
`;

function tlsConfig(dir: string, securePort: number): Record<string, string> {
  return {
    serverCnxnFactory: 'org.apache.zookeeper.server.NettyServerCnxnFactory',
    secureClientPort: String(securePort),
    secureClientPortAddress: '127.0.0.1',
    'ssl.keyStore.location': join(dir, 'server.pem'),
    'ssl.keyStore.type': 'PEM',
    'ssl.trustStore.location': join(dir, 'ca.pem'),
    'ssl.trustStore.type': 'PEM',
    'ssl.clientAuth': 'none',
  };
}

function writeCertificates(dir: string): void {
  const { ca, server } = certificates;
  writeFileSync(join(dir, 'server.pem'), server.key + server.cert);
  writeFileSync(join(dir, 'ca.pem'), ca);
}

function jaas(users: Record<string, string>): string {
  const lines = Object.entries(users).map(([user, password]) => `  user_${user}="${password}"`);
  return `Server {\n  ${auth}.DigestLoginModule required\n${lines.join('\n')};\n};\n`;
}

export class ApacheServer {
  readonly peer: ZooKeeperPeer;
  readonly port: number;
  readonly securePort?: number;
  /** As clients write it: `127.0.0.1:<port>`. */
  readonly address: string;
  readonly dir: string;
  /** What a client of the TLS port needs; the server trusts `client`, and shows `server`. */
  readonly tls = certificates;
  readonly #plan: Plan;
  readonly #isTemporary: boolean;
  #jvm: Jvm | undefined;

  constructor(plan: Plan, isTemporary: boolean) {
    this.#plan = plan;
    this.#isTemporary = isTemporary;
    this.peer = plan.peer;
    this.port = plan.port;
    if (plan.securePort !== undefined) this.securePort = plan.securePort;
    this.address = `127.0.0.1:${plan.port}`;
    this.dir = plan.dir;
  }

  /** That of the JVM, or of the last one if the server is stopped. */
  get pid(): number {
    return this.#jvm?.pid ?? 0;
  }

  get isRunning(): boolean {
    return this.#jvm?.isRunning ?? false;
  }

  /** Whether the last start failed because somebody else listens on one of the ports. */
  get lostItsPort(): boolean {
    return /BindException|Address already in use/.test(this.output());
  }

  async start(): Promise<void> {
    await this.launch();
    await this.untilReady(() => this.isServing());
  }

  /** Starts the JVM and does not wait for the server in it. */
  async launch(): Promise<void> {
    const { peer, dir, config, jvm } = this.#plan;
    const cfg = join(dir, 'zoo.cfg');
    const lines = Object.entries(config).map(([key, value]) => `${key}=${value}\n`);
    writeFileSync(cfg, lines.join(''));
    const main = 'org.apache.zookeeper.server.quorum.QuorumPeerMain';
    this.#jvm = await Jvm.start([...jvm, '-cp', peer.classPath, main, cfg], this.#outputPath);
  }

  async untilReady(isReady: () => Promise<boolean>): Promise<void> {
    const deadlineMs = Date.now() + startTimeoutMs;
    while (!(await isReady())) {
      if (!this.isRunning) throw this.#failure('ended while starting');
      if (Date.now() > deadlineMs) throw this.#failure(`was not ready in ${startTimeoutMs} ms`);
      await delay(pollMs);
    }
  }

  /** Never rejects: a server that can't be asked is not serving. */
  async isServing(): Promise<boolean> {
    try {
      const conf = await fourLetterWord(this.port, 'conf');
      const isOurs = conf.includes(`dataDir=${this.#plan.config.dataDir}`);
      const mayNotSay = conf.includes('not in the whitelist'); // by the test's own config
      if (isOurs ? (await this.mode()) === undefined : !mayNotSay) return false;
      return this.securePort === undefined || (await isOpen(this.securePort));
    } catch {
      return false;
    }
  }

  /** `standalone`, `leader`, `follower`, `read-only`, …; undefined while it takes no requests. */
  async mode(): Promise<string | undefined> {
    const answer = await fourLetterWord(this.port, 'srvr').catch(() => '');
    return /^Mode: (.+)$/m.exec(answer)?.[1];
  }

  async stop(): Promise<void> {
    await this.#jvm?.stop();
  }

  async kill(): Promise<void> {
    await this.#jvm?.kill();
  }

  /** Comes back on the same port with the same data. */
  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /** The last of what the server printed, warnings and worse. */
  output(): string {
    try {
      return readFileSync(this.#outputPath).subarray(-tailBytes).toString();
    } catch {
      return '';
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill(); // nobody reads its data any more
    if (this.#isTemporary) rmSync(this.dir, { recursive: true, force: true });
  }

  get #outputPath(): string {
    return join(this.dir, 'zookeeper.out');
  }

  #failure(what: string): Error {
    return new Error(`${this.peer.name} on ${this.address} ${what}:\n${this.output()}`);
  }
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('error', () => resolve(false));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}
