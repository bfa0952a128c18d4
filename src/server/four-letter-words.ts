/**
 * The four-letter words: what a link may ask instead of a session, in Apache's own words.
 *
 * In: the first four bytes of a link. Out: text, and the link is closed. A word that is not on the
 * whitelist is known, but not answered; four letters that are no word are a frame's length.
 *
 * Whoever can dial may ask, so no answer costs more than `textBytesMax` (CVE-2017-5637): it is cut
 * there, and says so.
 */

import { hostname, userInfo } from 'node:os';
import { escaped } from '../protocol/index.ts';
import type { Connection } from './connection.ts';
import { directoryBytes, requestLatency, type ServerFacts } from './facts.ts';
import { hexId } from './log-lines.ts';
import { Double, monitorValues } from './metrics.ts';
import { lastOperation } from './operations.ts';
import { fullVersion } from './version.ts';

export const textBytesMax = 4 * 1024 * 1024;

interface Word {
  readonly about: string;
  run(facts: ServerFacts, out: Text, rest: Buffer): void;
}

// biome-ignore format: a table is read down its columns
export const fourLetterWords = {
  conf: { about: 'the configuration in use',             run: conf },
  cons: { about: 'all links, with their counters',       run: cons },
  crst: { about: 'sets the counters of links to 0',      run: crst },
  dirs: { about: 'bytes of snapshots and logs',          run: dirs },
  dump: { about: 'sessions and their ephemeral nodes',   run: dump },
  envi: { about: 'the process and its machine',          run: envi },
  gtmk: { about: 'the trace mask, which traces nothing', run: (_, out) => out.add(String(traceMask)) },
  hash: { about: 'digests of the tree, of late',         run: hash },
  isro: { about: 'ro or rw',                             run: (_, out) => out.add('rw') },
  mntr: { about: 'all metrics',                          run: mntr },
  ruok: { about: 'imok',                                 run: (_, out) => out.add('imok') },
  srst: { about: 'sets the counters of the server to 0', run: srst },
  srvr: { about: 'the server, in short',                 run: srvr },
  stat: { about: 'the server and its links',             run: stat },
  stmk: { about: 'sets the trace mask',                  run: stmk },
  wchc: { about: 'watches by session',                   run: wchc },
  wchp: { about: 'watches by path',                      run: wchp },
  wchs: { about: 'how many watches',                     run: wchs },
} as const satisfies Record<string, Word>;

export type FourLetterWord = keyof typeof fourLetterWords;

/** What Apache answers to without being told to: `zkServer.sh status` asks for it. */
const always: FourLetterWord = 'srvr';

/** The words on a whitelist, as `4lw.commands.whitelist` writes it. */
export function readWhitelist(text: string): ReadonlySet<string> {
  const named = text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
  const words = named.includes('*') ? Object.keys(fourLetterWords) : named;
  return new Set([always, ...words]);
}

/** The answer, or undefined where the letters are no word. */
export function answerWord(
  facts: ServerFacts,
  whitelist: ReadonlySet<string>,
  word: string,
  rest: Buffer = Buffer.alloc(0),
): string | undefined {
  if (!Object.hasOwn(fourLetterWords, word)) return undefined;
  if (!whitelist.has(word)) {
    return `${word} is not executed because it is not in the whitelist.\n`;
  }
  const out = new Text();
  (fourLetterWords[word as FourLetterWord] as Word).run(facts, out, rest);
  return out.toString();
}

/** Lines up to a limit. */
class Text {
  #text = '';
  #isFull = false;

  get isFull(): boolean {
    return this.#isFull;
  }

  add(text: string): void {
    if (this.#isFull) return;
    // A character is at most three bytes of UTF-8.
    if (this.#text.length + text.length > textBytesMax / 3) {
      this.#isFull = true;
      this.#text += '… there is more than is shown\n';
      return;
    }
    this.#text += text;
  }

  line(text = ''): void {
    this.add(`${text}\n`);
  }

  toString(): string {
    return this.#text;
  }
}

let traceMask = 0x132n;

export function getTraceMask(): bigint {
  return traceMask;
}

export function setTraceMask(mask: bigint): void {
  traceMask = mask;
}

export interface ConfValues {
  readonly clientPort: number;
  readonly secureClientPort: number;
  readonly dataDir: string;
  readonly dataLogDir: string;
  readonly tickTime: number;
  readonly maxClientCnxns: number;
  readonly minSessionTimeout: number;
  readonly maxSessionTimeout: number;
  readonly clientPortListenBacklog: number;
  readonly serverId: number;
}

export function confValues(facts: ServerFacts): ConfValues {
  const perAddress = facts.engine.limits.connectionsPerAddressMax;
  return {
    clientPort: facts.port === facts.securePort ? -1 : facts.port,
    secureClientPort: facts.securePort ?? -1,
    dataDir: facts.storage?.dataDir ?? '',
    dataLogDir: facts.storage?.dataLogDir ?? '',
    tickTime: facts.tickTimeMs,
    maxClientCnxns: perAddress === Infinity ? 0 : perAddress,
    minSessionTimeout: facts.minSessionTimeoutMs,
    maxSessionTimeout: facts.maxSessionTimeoutMs,
    clientPortListenBacklog: -1,
    serverId: 0,
  };
}

function conf(facts: ServerFacts, out: Text): void {
  const values = confValues(facts);
  const bytes = directoryBytes(facts);
  out.line(`clientPort=${values.clientPort}`);
  out.line(`secureClientPort=${values.secureClientPort}`);
  out.line(`dataDir=${values.dataDir}`);
  out.line(`dataDirSize=${bytes.data}`);
  out.line(`dataLogDir=${values.dataLogDir}`);
  out.line(`dataLogSize=${bytes.log}`);
  out.line(`tickTime=${values.tickTime}`);
  out.line(`maxClientCnxns=${values.maxClientCnxns}`);
  out.line(`minSessionTimeout=${values.minSessionTimeout}`);
  out.line(`maxSessionTimeout=${values.maxSessionTimeout}`);
  out.line(`clientPortListenBacklog=${values.clientPortListenBacklog}`);
  out.line(`serverId=${values.serverId}`);
}

/** As Java prints one that it did not look up. */
function socketAddress({ address, port }: { address: string; port: number }): string {
  return `/${address.includes(':') ? `[${address}]` : address}:${port}`;
}

function linkLine(connection: Connection, brief: boolean): string {
  const link = connection.stats(0);
  // A link that asks a word, as the one that asked for this, is read no more.
  const isAsking = connection.state === 'greeting' && link.packetsReceived > 0;
  const interest = isAsking ? 0 : 1;
  const counts = `queued=${link.inFlight},recved=${link.packetsReceived},sent=${link.packetsSent}`;
  const head = ` ${socketAddress(link)}[${interest}](${counts}`;
  if (brief || link.sessionId === 0n) return `${head})`;
  const { latency } = link;
  const more = [
    `sid=${hexId(link.sessionId)}`,
    `lop=${lastOperation(connection)}`,
    `est=${Math.floor(link.establishedWallMs)}`,
    `to=${link.sessionTimeoutMs}`,
    ...(link.lastXid < 0 ? [] : [`lcxid=0x${link.lastXid.toString(16)}`]),
    `lzxid=${hexId(BigInt(link.lastZxid))}`,
    `lresp=${Math.round(link.lastReplyMs)}`,
    `llat=${Math.round(latency.lastMs)}`,
    `minlat=${Math.round(latency.minMs)}`,
    `avglat=${Math.floor(latency.averageMs)}`,
    `maxlat=${Math.round(latency.maxMs)}`,
  ];
  return `${head},${more.join(',')})`;
}

function links(facts: ServerFacts, out: Text, brief: boolean): void {
  for (const connection of facts.engine.connections) {
    if (out.isFull) break;
    if (!connection.wire.secure) out.line(linkLine(connection, brief));
  }
  out.line();
}

function cons(facts: ServerFacts, out: Text): void {
  links(facts, out, false);
}

export function resetLinks({ engine }: ServerFacts): void {
  for (const connection of engine.connections) connection.resetStats();
}

function crst(facts: ServerFacts, out: Text): void {
  resetLinks(facts);
  out.line('Connection stats reset.');
}

function dirs(facts: ServerFacts, out: Text): void {
  const { data, log } = directoryBytes(facts);
  out.line(`datadir_size: ${data}`);
  out.line(`logdir_size: ${log}`);
}

/** NIOServerCnxnFactory looks through its links in steps of `nio.sessionlessCnxnTimeout`. */
const linkStepMs = 10_000;

/** By when a link ends if nothing is heard of it: with its session, or for want of one. */
function linksByEnd({ engine }: ServerFacts, toWallMs: number): Map<number, Connection[]> {
  const ends = new Map<number, Connection[]>();
  for (const connection of engine.connections) {
    const { session, establishedWallMs } = connection;
    const greeting = Math.min(engine.limits.handshakeTimeoutMs, linkStepMs);
    const endMs = session?.bucketMs ?? establishedWallMs - toWallMs + greeting;
    const stepMs = (Math.floor(endMs / linkStepMs) + 1) * linkStepMs;
    const others = ends.get(stepMs);
    if (others === undefined) ends.set(stepMs, [connection]);
    else others.push(connection);
  }
  return ends;
}

function hash({ engine }: ServerFacts, out: Text): void {
  for (const { zxid, digest } of engine.tree.digestLog) {
    out.line(`${zxid.toString(16)}: ${BigInt.asIntN(64, digest)}`);
  }
}

function dump(facts: ServerFacts, out: Text): void {
  const { engine, clock } = facts;
  const { sessions, tree, connections } = engine;
  const toWallMs = clock.wallMs() - clock.nowMs();
  out.line('SessionTracker dump:');
  out.line(`Session Sets (${sessions.buckets.size})/(${sessions.size}):`);
  for (const [dueMs, due] of [...sessions.buckets].sort(([a], [b]) => a - b)) {
    out.line(`${due.size} expire at ${javaDate(dueMs + toWallMs)}:`);
    for (const { id } of due) {
      if (out.isFull) return;
      out.line(`\t${hexId(id)}`);
    }
  }
  out.line('ephemeral nodes dump:');
  out.line(`Sessions with Ephemerals (${tree.owners.size}):`);
  for (const [id, paths] of tree.owners) {
    out.line(`${hexId(id)}:`);
    for (const path of paths) {
      if (out.isFull) return;
      out.line(`\t${escaped(path)}`);
    }
  }
  out.line('Connections dump:');
  const ends = linksByEnd(facts, toWallMs);
  out.line(`Connections Sets (${ends.size})/(${connections.size}):`);
  for (const [endMs, links] of [...ends].sort(([a], [b]) => a - b)) {
    out.line(`${links.length} expire at ${javaDate(endMs + toWallMs)}:`);
    for (const { wire, watcherId } of links) {
      if (out.isFull) return;
      out.line(`\tip: ${socketAddress(wire)} sessionId: ${hexId(watcherId)}`);
    }
  }
}

/** `Sun Nov 15 10:38:14 UTC 2026` */
function javaDate(wallMs: number): string {
  const [day, date, month, year, time] = new Date(wallMs).toUTCString().replace(',', '').split(' ');
  return `${day} ${month} ${date} ${time} UTC ${year}`;
}

/** Java's names, so that who reads them finds something. */
export function environment(): Record<string, string> {
  const memory = process.memoryUsage();
  const megabytes = (bytes: number) => `${Math.floor(bytes / 1024 / 1024)}MB`;
  return {
    'zookeeper.version': fullVersion(),
    'host.name': hostname(),
    'java.version': 'none',
    'java.vendor': 'none',
    'node.version': process.versions.node,
    'os.name': process.platform === 'linux' ? 'Linux' : process.platform,
    'os.arch': process.arch === 'x64' ? 'amd64' : process.arch,
    'user.name': userName(),
    'user.dir': workingFolder(),
    'os.memory.free': megabytes(memory.heapTotal - memory.heapUsed),
    'os.memory.max': megabytes(memory.rss),
    'os.memory.total': megabytes(memory.heapTotal),
  };
}

export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown'); // a uid that no user has, as in containers
  }
}

function workingFolder(): string {
  try {
    return process.cwd();
  } catch {
    return 'unknown'; // it was removed since the start
  }
}

function envi(_: ServerFacts, out: Text): void {
  out.line('Environment:');
  for (const [name, value] of Object.entries(environment())) out.line(`${name}=${value}`);
}

function mntr(facts: ServerFacts, out: Text): void {
  out.line(`zk_version\t${fullVersion()}`);
  out.line('zk_server_state\tstandalone');
  for (const [name, value] of monitorValues(facts)) out.line(`zk_${name}\t${value}`);
}

function srst({ engine }: ServerFacts, out: Text): void {
  engine.stats.reset();
  out.line('Server stats reset.');
}

function srvr(facts: ServerFacts, out: Text): void {
  out.line(`Zookeeper version: ${fullVersion()}`);
  state(facts, out);
}

function stat(facts: ServerFacts, out: Text): void {
  out.line(`Zookeeper version: ${fullVersion()}`);
  out.line('Clients:');
  links(facts, out, true);
  state(facts, out);
}

function state(facts: ServerFacts, out: Text): void {
  const { engine } = facts;
  const { min, average, max } = requestLatency(facts);
  out.line(`Latency min/avg/max: ${min}/${new Double(average)}/${max}`);
  out.line(`Received: ${engine.stats.packetsReceived}`);
  out.line(`Sent: ${engine.stats.packetsSent}`);
  out.line(`Connections: ${engine.connections.size}`);
  out.line(`Outstanding: ${engine.outstanding}`);
  out.line(`Zxid: 0x${engine.lastZxid.toString(16)}`);
  out.line('Mode: standalone');
  out.line(`Node count: ${engine.tree.nodeCount}`);
}

/** Eight bytes behind the word. Without them Apache says nothing. */
function stmk(_: ServerFacts, out: Text, rest: Buffer): void {
  if (rest.length < 8) return;
  traceMask = rest.readBigInt64BE(0);
  out.add(String(traceMask));
}

function wchc({ engine }: ServerFacts, out: Text): void {
  const { data } = engine.watches;
  for (const watcher of data.watchers()) {
    out.line(hexId(watcher.watcherId));
    for (const path of data.pathsOf(watcher)) {
      if (out.isFull) return;
      out.line(`\t${escaped(path)}`);
    }
  }
  out.line();
}

function wchp({ engine }: ServerFacts, out: Text): void {
  for (const [path, watchers] of engine.watches.data.paths()) {
    out.line(escaped(path));
    for (const { watcherId } of watchers) {
      if (out.isFull) return;
      out.line(`\t${hexId(watcherId)}`);
    }
  }
  out.line();
}

function wchs({ engine }: ServerFacts, out: Text): void {
  const { data } = engine.watches;
  out.line(`${[...data.watchers()].length} connections watching ${data.pathCount} paths`);
  out.line(`Total watches:${data.count}`);
}
