/**
 * Fuzzed frames (P1), two ways: straight into the engine, for their number, and over TCP into a server in
 * a process of its own, for the rest of the way. A decent client lives on the same server and looks on.
 *
 * What must hold: nothing is thrown, nobody hangs (each link that is still open answers a ping), what is
 * said is made of whole frames, memory stays bounded, the decent client's node, watch and session are as
 * it left them, and whatever the frames made the server log it can read back.
 */

import { readFileSync, rmSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { encode, FrameSplitter } from '../../src/jute/index.ts';
import { ConnectRequest, openAcl } from '../../src/protocol/index.ts';
import { type Connection, Engine, openPersistence, type Wire } from '../../src/server/index.ts';
import { systemClock } from '../../src/support/index.ts';
import { RawClient } from '../../src/testing/index.ts';
import { Random, seedOf } from '../differential/random.ts';
import { type Build, Child, temporaryFolder } from './child.ts';
import { type Corpus, framed, mutated, readCorpus } from './mutate.ts';

export interface FuzzReport {
  /** As the server counted them: what lies behind a link's end is not looked at. Over TCP, as sent. */
  frames: number;
  links: number;
  /** Links that the server closed, as it should where a length or a greeting can't be. */
  closedLinks: number;
  replies: number;
  generations: number;
  /** Directories read back, and how many txns the frames had made it log. */
  readBack: number;
  txns: number;
  memoryMb: number;
  failures: string[];
}

const emptyReport = (): FuzzReport => ({
  frames: 0,
  links: 0,
  closedLinks: 0,
  replies: 0,
  generations: 0,
  readBack: 0,
  txns: 0,
  memoryMb: 0,
  failures: [],
});

const greeting = encode(ConnectRequest, {
  protocolVersion: 0,
  lastZxidSeen: 0n,
  timeOut: 40_000,
  sessionId: 0n,
  passwd: Buffer.alloc(16),
  readOnly: false,
});
const withLength = (frame: Buffer) => {
  const length = Buffer.alloc(4);
  length.writeInt32BE(frame.length);
  return Buffer.concat([length, frame]);
};
const ping = withLength(Buffer.from('fffffffe0000000b', 'hex'));
const framesPerLink = 50;
const linksAtOnce = 20;

/** A link without a socket. Counts what is said, and keeps of it the last frame alone. */
class FakeWire implements Wire {
  readonly address = '127.0.0.1';
  readonly port = 1;
  readonly secure = false;
  readonly queuedBytes = 0;
  readonly #splitter = new FrameSplitter(256 * 1024 * 1024, (bytes, start, end) => {
    this.frames += 1;
    if (end - start >= 4 && bytes.readInt32BE(start) === -2) this.pings += 1;
  });
  frames = 0;
  pings = 0;
  isClosed = false;
  isPaused = false;

  write(bytes: Buffer, length: number): boolean {
    this.#splitter.push(bytes, length);
    return true;
  }

  end(): void {
    this.isClosed = true;
  }

  destroy(): void {
    this.isClosed = true;
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
  }
}

/** Straight into the engine: so many frames, a new engine every `perGeneration`. */
export async function fuzzEngine(options: {
  readonly seed: number;
  readonly frames: number;
  readonly perGeneration?: number;
  /** One generation in so many writes a log, and is read back. */
  readonly readBackEvery?: number;
  readonly onGeneration?: (report: FuzzReport) => void;
}): Promise<FuzzReport> {
  const { perGeneration = 100_000, readBackEvery = 10 } = options;
  const report = emptyReport();
  const corpus = readCorpus();
  while (report.frames < options.frames && report.failures.length === 0) {
    const seed = seedOf(options.seed, report.generations);
    const until = Math.min(options.frames, report.frames + perGeneration);
    const isKept = report.generations % readBackEvery === 0;
    await generation(new Random(seed), corpus, until, isKept, report).catch((error) => {
      report.failures.push(`${(error as Error).stack}`);
    });
    if (report.failures.length > 0) report.failures.push(`generation seed ${seed}`);
    report.generations += 1;
    report.memoryMb = Math.max(report.memoryMb, Math.round(process.memoryUsage().rss / 2 ** 20));
    options.onGeneration?.(report);
  }
  return report;
}

async function generation(
  random: Random,
  corpus: Corpus,
  until: number,
  isKept: boolean,
  report: FuzzReport,
): Promise<void> {
  const dataDir = isKept ? temporaryFolder('fuzz') : undefined;
  const disk =
    dataDir === undefined
      ? undefined
      : await openPersistence({ dataDir, unsafeNoFsync: true, preallocBytes: 0 });
  const engine = new Engine({
    clock: systemClock,
    tickTimeMs: 2_000,
    minSessionTimeoutMs: 4_000,
    maxSessionTimeoutMs: 40_000,
    extendedTypesEnabled: true,
    digestEnabled: true,
    ...(disk ? { log: disk.log, tree: disk.tree } : {}),
  });
  engine.onFailed((error) => report.failures.push(`the engine stopped: ${error.stack}`));
  try {
    while (report.frames < until && report.failures.length === 0) {
      await someLinks(engine, random, corpus, Math.min(until - report.frames, 1_000), report);
    }
    report.txns += engine.lastZxid;
  } finally {
    await engine.stop();
    await disk?.log.close();
  }
  if (dataDir === undefined) return;
  if (report.failures.length === 0) {
    const again = await openPersistence({ dataDir, unsafeNoFsync: true, preallocBytes: 0 });
    const [before, after] = [engine.tree, again.tree].map(picture);
    if (before !== after) report.failures.push('what was read back is not what was there');
    report.readBack += 1;
    await again.log.close();
  }
  rmSync(dataDir, { recursive: true, force: true });
}

/** All there is to know of a tree, in one string. */
export function picture(tree: Engine['tree']): string {
  const nodes = [...tree.walk()].map((node) => {
    const stat = tree.nodes.persistedOf(node).toString('hex');
    const data = tree.nodes.dataOf(node)?.toString('hex');
    return JSON.stringify([tree.nodes.pathOf(node), data, stat, tree.aclOf(node)]);
  });
  const sessions = [...tree.sessions].map(([id, timeoutMs]) => `${id} ${timeoutMs}`);
  return [...nodes.sort(), ...sessions.sort(), tree.lastZxid].join('\n');
}

async function someLinks(
  engine: Engine,
  random: Random,
  corpus: Corpus,
  frames: number,
  report: FuzzReport,
): Promise<void> {
  const links: { readonly wire: FakeWire; readonly connection: Connection }[] = [];
  for (let i = 0; i < linksAtOnce; i++) {
    const wire = new FakeWire();
    const connection = engine.accept(wire);
    links.push({ wire, connection });
    const isDecent = random.chance(0.95);
    connection.receive(
      isDecent ? withLength(greeting) : framed(random, mutated(random, corpus.greetings)),
    );
  }
  await settled(engine, links);
  for (let round = 0; round < frames; ) {
    for (const { wire, connection } of links) {
      const burst = 1 + random.below(8);
      round += burst;
      if (wire.isClosed || wire.isPaused) continue;
      const chunk = Buffer.concat(
        random.times(burst, () => framed(random, mutated(random, corpus.requests))),
      );
      const cut = random.below(chunk.length + 1);
      connection.receive(chunk.subarray(0, cut));
      if (!wire.isClosed && cut < chunk.length) connection.receive(chunk.subarray(cut));
    }
    await setImmediate();
  }
  await settled(engine, links);
  for (const { wire, connection } of links) {
    const before = wire.pings;
    report.links += 1;
    report.frames += connection.packetsReceived;
    report.replies += wire.frames;
    // A frame cut short swallows the ping as its rest; any number of frames may be what it asked for.
    if (!wire.isClosed && connection.state === 'open' && wire.frames > 0) {
      connection.receive(ping);
      await settled(engine, [{ wire, connection }]);
      if (!wire.isClosed && wire.pings === before && !isMidFrame(connection)) {
        report.failures.push('a link that is open does not answer');
      }
    }
    if (wire.isClosed) report.closedLinks += 1;
    connection.close();
  }
}

/** Whether it waits for the rest of a frame that lied about its length. Told by feeding it zeros. */
function isMidFrame(connection: Connection): boolean {
  const before = connection.packetsReceived;
  for (let i = 0; i < 20 && connection.isLive; i++) connection.receive(Buffer.alloc(65_536));
  return !connection.isLive || connection.packetsReceived > before;
}

async function settled(
  engine: Engine,
  links: readonly { readonly wire: FakeWire; readonly connection: Connection }[],
): Promise<void> {
  const isBusy = () =>
    links.some(
      ({ wire, connection }) =>
        !wire.isClosed && (connection.inFlight > 0 || connection.state === 'held'),
    );
  const lateMs = performance.now() + 30_000;
  do {
    await setImmediate();
    if (performance.now() > lateMs) throw new Error('requests that are never answered');
  } while (engine.isServing && isBusy());
}

/** Over TCP, into a server of its own, while a decent client looks on. */
export async function fuzzServer(options: {
  readonly seed: number;
  readonly frames: number;
  readonly build: Build;
  readonly memoryMaxMb?: number;
  readonly onRound?: (report: FuzzReport) => void;
}): Promise<FuzzReport> {
  const { memoryMaxMb = 1_000 } = options;
  const report = emptyReport();
  const random = new Random(options.seed);
  const corpus = readCorpus();
  const dataDir = temporaryFolder('fuzz');
  const serverOptions = { dataDir, preallocBytes: 0, snapCount: 20_000 };
  let child = new Child(options.build, serverOptions);
  let port = await child.port();
  const witness = await Witness.connect(port);
  try {
    while (report.frames < options.frames && report.failures.length === 0) {
      await Promise.all(random.times(linksAtOnce, () => abuse(port, random, corpus, report)));
      await witness.look(report);
      const memoryMb = memoryOf(child);
      report.memoryMb = Math.max(report.memoryMb, memoryMb);
      if (memoryMb > memoryMaxMb) report.failures.push(`${memoryMb} MB in use`);
      if (child.errors !== '') report.failures.push(child.errors);
      options.onRound?.(report);
    }
    witness.close();
    await child.kill('SIGTERM');
    // What the frames made it write must not keep it from starting again.
    child = new Child(options.build, serverOptions);
    port = await child.port();
    report.readBack += 1;
  } catch (error) {
    report.failures.push(`seed ${options.seed}: ${(error as Error).stack}: ${child.errors}`);
  } finally {
    await child.kill();
    rmSync(dataDir, { recursive: true, force: true });
  }
  return report;
}

function memoryOf({ process: { pid } }: Child): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
  } catch {
    return 0; // no such file elsewhere than on Linux
  }
}

async function abuse(
  port: number,
  random: Random,
  corpus: Corpus,
  report: FuzzReport,
): Promise<void> {
  const raw = await RawClient.dial(port);
  report.links += 1;
  if (random.chance(0.05)) {
    raw.write(framed(random, mutated(random, corpus.greetings)));
    report.frames += 1;
  } else {
    await raw.shakeHands();
  }
  const isLiar = random.chance(0.2);
  for (let sent = 0; sent < framesPerLink && !raw.isClosed; ) {
    const burst = 1 + random.below(10);
    const frames = random.times(burst, () => mutated(random, corpus.requests));
    // The answer to an xid of -1 looks like an event to whoever hears it, and not like one to decode.
    for (const frame of frames) {
      if (frame.length < 4 || frame.readInt32BE(0) !== -1) continue;
      if (!isLiar) frame.writeInt32BE(1, 0);
    }
    const chunk = Buffer.concat(
      frames.map((frame) => framed(random, frame, isLiar && random.chance(0.05))),
    );
    raw.write(isLiar && random.chance(0.1) ? chunk.subarray(0, random.below(chunk.length)) : chunk);
    sent += burst;
    report.frames += burst;
    await setImmediate();
  }
  // Who did not lie about a length is answered, or cut off; the rest just hang up.
  if (!isLiar && raw.sessionId !== 0n && !(await isAnswered(raw))) {
    report.failures.push('a link that is open does not answer');
  }
  if (raw.isClosed) report.closedLinks += 1;
  report.replies += raw.heard.length;
  raw.close();
}

async function isAnswered(raw: RawClient): Promise<boolean> {
  let isLate = false;
  const impatience = setTimeout(() => {
    isLate = true;
    raw.close();
  }, 20_000);
  await raw.ask('exists', { path: '/', watch: false }, 0x7000_0000).catch(() => {});
  clearTimeout(impatience);
  return !isLate;
}

const witnessPath = '/witness-of-chaos';

/** A decent client: its node, its watch and its session are none of the others' business. */
class Witness {
  readonly #client: RawClient;
  #value = 0;

  private constructor(client: RawClient) {
    this.#client = client;
  }

  static async connect(port: number): Promise<Witness> {
    const client = await RawClient.connect(port, { timeOut: 30_000 });
    const made = { path: witnessPath, data: Buffer.from('0'), acl: [...openAcl], flags: 1 };
    await client.ask('create', made);
    return new Witness(client);
  }

  async look(report: FuzzReport): Promise<void> {
    const client = this.#client;
    const hurry = setTimeout(() => client.close(), 10_000);
    try {
      const { data, stat } = await client.ask('getData', { path: witnessPath, watch: true });
      if (data?.toString() !== `${this.#value}` || stat.ephemeralOwner !== client.sessionId) {
        report.failures.push(`the witness's node was touched: ${data}`);
      }
      this.#value += 1;
      const next = Buffer.from(`${this.#value}`);
      await client.ask('setData', { path: witnessPath, data: next, version: -1 });
      const events = await client.events();
      if (`${events}` !== `dataChanged ${witnessPath}`) {
        report.failures.push(`the witness heard ${events.length} events: ${events}`);
      }
    } catch (error) {
      report.failures.push(`the witness: ${error}`);
    } finally {
      clearTimeout(hurry);
    }
  }

  close(): void {
    this.#client.close();
  }
}
