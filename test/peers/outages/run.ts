/**
 * How many sessions a short outage costs: our client beside Apache's Java client, by hand.
 *
 *   npx tsx test/peers/outages/run.ts
 *   npx tsx test/peers/outages/run.ts --server apache --timeouts 4,6 --outages 0.5,0.7 --kind stop --sessions 30
 *
 * Each cell of the table is one outage of one server process with idle sessions of both clients, opened
 * at random moments so that their pings are out of step. The outage is a share of the session timeout:
 *
 *   stop   SIGSTOP, and SIGCONT when the time is over
 *   kill   SIGKILL, and a start on the same port and directory; left out where a start takes longer
 *   cut    the server runs on, and a proxy in front of it refuses connections
 *
 * "at 0.75" stands behind a cell whose outage took another share than the column says.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Client, connect } from '../../../src/client/index.ts';
import { Link } from '../../../src/testing/index.ts';
import { Build, Child, temporaryFolder } from '../../chaos/child.ts';
import { findZooKeepers, freePort, startApache, type ZooKeeperPeer } from '../zookeeper.ts';

const { values } = parseArgs({
  options: {
    server: { type: 'string', default: 'drover,apache' },
    kind: { type: 'string', default: 'stop,kill,cut' },
    timeouts: { type: 'string', default: '2,4,6,10,30' },
    outages: { type: 'string', default: '0.1,0.3,0.5,0.6,0.7,0.8,0.9,0.95' },
    sessions: { type: 'string', default: '20' },
    tick: { type: 'string', default: '2000' },
  },
});
const list = (text: string) => text.split(',').filter((item) => item !== '');
const sessions = Number(values.sessions);
const tickTimeMs = Number(values.tick);
const timeouts = list(values.timeouts).map((seconds) => Number(seconds) * 1_000);
const outages = list(values.outages).map(Number);

// ── the server ──────────────────────────────────────────────────────────────────────────────────

interface Process {
  readonly port: number;
  pid(): number;
  kill(): Promise<void>;
  /** Resolves once it takes clients again. */
  start(): Promise<void>;
  dispose(): Promise<void>;
}

async function startDrover(build: Build): Promise<Process> {
  const dataDir = temporaryFolder('outage');
  const port = await freePort();
  const bounds = { minSessionTimeoutMs: 1_000, maxSessionTimeoutMs: 60_000 };
  const options = { dataDir, port, tickTimeMs, preallocBytes: 0, ...bounds };
  let child = new Child(build, options);
  await child.port();
  return {
    port,
    pid: () => child.process.pid!,
    kill: () => child.kill(),
    async start() {
      child = new Child(build, options);
      await child.port();
    },
    async dispose() {
      await child.kill();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

async function startApacheProcess(peer: ZooKeeperPeer): Promise<Process> {
  const config = { minSessionTimeout: '1000', maxSessionTimeout: '60000' };
  const server = await startApache(peer, { tickTimeMs, config });
  return {
    port: server.port,
    pid: () => server.pid,
    kill: () => server.kill(),
    start: () => server.start(),
    dispose: () => server[Symbol.asyncDispose](),
  };
}

// ── the clients ─────────────────────────────────────────────────────────────────────────────────

interface Count {
  readonly connected: number;
  readonly lost: number;
  readonly neither: number;
}

class JavaSessions {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor({ classPath }: ZooKeeperPeer) {
    const program = fileURLToPath(new URL('Sessions.java', import.meta.url));
    const quiet = '-Dorg.slf4j.simpleLogger.defaultLogLevel=off';
    const logback = `-Dlogback.configurationFile=${fileURLToPath(new URL('logback.xml', import.meta.url))}`;
    const flags = ['-Xmx512m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', quiet, logback];
    this.#child = spawn('java', [...flags, '-cp', classPath, program], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#lines = createInterface(this.#child.stdout!)[Symbol.asyncIterator]();
  }

  async #ask(line: string): Promise<string> {
    this.#child.stdin!.write(`${line}\n`);
    const answer = await this.#lines.next();
    if (answer.done) throw new Error('the Java program ended');
    return answer.value;
  }

  async open(address: string, timeoutMs: number): Promise<void> {
    await this.#ask(`open ${address} ${sessions} ${timeoutMs}`);
  }

  async count(): Promise<Count> {
    const [connected = 0, lost = 0, neither = 0] = (await this.#ask('count'))
      .split(' ')
      .map(Number);
    return { connected, lost, neither };
  }

  async close(): Promise<void> {
    await this.#ask('close');
  }

  dispose(): void {
    this.#child.kill('SIGKILL');
  }
}

class OurSessions {
  #held: { readonly client: Client; readonly signal: AbortSignal }[] = [];

  async open(address: string, sessionTimeoutMs: number): Promise<void> {
    for (let i = 0; i < sessions; i++) {
      const client = await connect(address, { sessionTimeoutMs });
      this.#held.push({ client, signal: client.sessionSignal });
      await sleep((Math.random() * 2 * sessionTimeoutMs) / 3 / sessions);
    }
  }

  count(): Count {
    const lost = this.#held.filter(({ signal }) => signal.aborted).length;
    const connected = this.#held.filter(
      ({ client, signal }) => !signal.aborted && client.state.name === 'connected',
    ).length;
    return { connected, lost, neither: this.#held.length - lost - connected };
  }

  async close(): Promise<void> {
    await Promise.all(this.#held.map(({ client }) => client.close()));
    this.#held = [];
  }
}

// ── a cell ──────────────────────────────────────────────────────────────────────────────────────

interface Cell {
  readonly ours: Count;
  readonly java: Count;
  readonly awayMs: number;
}

/** How long a start took when it was measured last: by it the next one begins early enough. */
const startTookMs = new Map<string, number>();

async function oneOutage(
  server: { readonly name: string; readonly process: Process },
  java: JavaSessions,
  kind: string,
  timeoutMs: number,
  share: number,
): Promise<Cell | undefined> {
  const { name, process: target } = server;
  const awayMs = timeoutMs * share;
  if (kind === 'kill' && awayMs < (startTookMs.get(name) ?? 0)) return undefined;
  const link = await Link.to({ host: '127.0.0.1', port: target.port });
  const address = kind === 'cut' ? link.address : `127.0.0.1:${target.port}`;
  const ours = new OurSessions();
  await Promise.all([ours.open(address, timeoutMs), java.open(address, timeoutMs)]);
  await sleep((Math.random() * timeoutMs) / 3 + timeoutMs / 3);

  const fromMs = performance.now();
  if (kind === 'stop') {
    process.kill(target.pid(), 'SIGSTOP');
    await sleep(awayMs);
    process.kill(target.pid(), 'SIGCONT');
  } else if (kind === 'kill') {
    await target.kill();
    await sleep(awayMs - (performance.now() - fromMs) - (startTookMs.get(name) ?? 0));
    const startMs = performance.now();
    await target.start();
    startTookMs.set(name, performance.now() - startMs);
  } else {
    link.refuse();
    link.cut();
    await sleep(awayMs);
    await link.accept();
  }
  const tookMs = performance.now() - fromMs;

  // A session that is neither lost nor connected has a timeout and a half to become one of the two.
  const untilMs = performance.now() + timeoutMs * 1.5 + 2_000;
  await sleep(Math.min(2_000, timeoutMs / 2));
  let counts = { ours: ours.count(), java: await java.count() };
  while (counts.ours.neither + counts.java.neither > 0 && performance.now() < untilMs) {
    await sleep(100);
    counts = { ours: ours.count(), java: await java.count() };
  }
  await Promise.all([ours.close(), java.close()]);
  await link.close();
  return { ...counts, awayMs: tookMs };
}

const shown = ({ lost, neither }: Count) =>
  `${lost}${neither > 0 ? ` (${neither} without a link)` : ''}`;

async function main(): Promise<void> {
  const { found, missing } = await findZooKeepers((line) => console.error(line));
  const [peer] = found;
  if (peer === undefined) throw new Error(missing.map(({ how }) => how).join(' '));
  using build = new Build();
  for (const name of list(values.server)) {
    for (const kind of list(values.kind)) {
      console.log(`\n${name}, ${kind}: sessions lost of ${sessions}, ours / Java's\n`);
      console.log(`| timeout | ${outages.join(' | ')} |`);
      console.log(`| --- | ${outages.map(() => '---').join(' | ')} |`);
      const rows = await Promise.all(
        timeouts.map(async (timeoutMs) => {
          const target =
            name === 'apache' ? await startApacheProcess(peer) : await startDrover(build);
          const java = new JavaSessions(peer);
          try {
            const cells: string[] = [];
            for (const share of outages) {
              const server = { name, process: target };
              const cell = await oneOutage(server, java, kind, timeoutMs, share);
              const tookShare = (cell?.awayMs ?? 0) / timeoutMs;
              const away = Math.abs(tookShare - share) > 0.01 ? ` at ${tookShare.toFixed(2)}` : '';
              cells.push(cell ? `${shown(cell.ours)} / ${shown(cell.java)}${away}` : '');
            }
            return `| ${timeoutMs / 1_000} s | ${cells.join(' | ')} |`;
          } finally {
            java.dispose();
            await target.dispose();
          }
        }),
      );
      for (const row of rows) console.log(row);
    }
  }
}

await main();
process.exit(0);
