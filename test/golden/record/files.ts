/**
 * Records what Apache's server leaves on disk, and what a client saw of it.
 *
 * In: a peer. Out, in test/golden/files/<name>/:
 *
 *   version-2/      two logs and two snapshots: the server was restarted in between
 *   expected.json   the nodes as the Java client read them just before the end, and the sessions left open
 *
 * and in <name>-gzip/ and <name>-snappy/ the same state as one compressed snapshot. Of the zeros that a log
 * is grown by ahead of its data, only the first are kept.
 */
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type ApacheServer,
  fourLetterWord,
  startApache,
  type ZooKeeperPeer,
} from '../../peers/zookeeper.ts';

const program = fileURLToPath(new URL('Files.java', import.meta.url));
const files = fileURLToPath(new URL('../files/', import.meta.url));

const paddingKeptBytes = 1_024;

/** Sessions are long, lest one ends while we look. Logs grow by 64 KiB, not 64 MiB. */
const options = {
  config: { maxSessionTimeout: '600000' },
  jvm: ['-Dzookeeper.preAllocSize=64'],
};

interface Expected {
  peer: string;
  lastZxid: string;
  sessions: { id: string; timeoutMs: number }[];
  nodes: Record<string, unknown>[];
}

export async function recordFiles(
  peer: ZooKeeperPeer,
  name: string,
  scratch: string,
  compressions: string[],
): Promise<void> {
  const dir = join(scratch, name);
  mkdirSync(dir);
  const lines: string[] = [];
  await using server = await startApache(peer, { ...options, dir });
  lines.push(...(await run(server, 'first')));
  await server.restart();
  lines.push(...(await run(server, 'second')), ...(await run(server, 'dump')));
  const expected = await read(server, lines);
  await server.stop();
  keep(dir, name, () => true, expected);
  for (const compression of compressions) {
    const copy = join(scratch, `${name}-${compression}`);
    cpSync(join(dir, 'data'), join(copy, 'data'), { recursive: true });
    await compress(peer, copy, compression);
    const isCompressed = (file: string) => file.endsWith(suffixes[compression]!);
    keep(copy, `${name}-${compression}`, isCompressed, expected);
  }
}

const suffixes: Record<string, string> = { gzip: '.gz', snappy: '.snappy' };

/** A server that starts writes what it has read as a snapshot. */
async function compress(peer: ZooKeeperPeer, dir: string, compression: string): Promise<void> {
  const method = suffixes[compression]!.slice(1);
  const flag = `-Dzookeeper.snapshot.compression.method=${method}`;
  await using server = await startApache(peer, { ...options, dir, jvm: [...options.jvm, flag] });
  await server.stop();
}

async function run(server: ApacheServer, command: string): Promise<string[]> {
  const flags = ['-XX:TieredStopAtLevel=1', '-Dorg.slf4j.simpleLogger.defaultLogLevel=error'];
  const { classPath } = server.peer;
  const encoding = '-Dfile.encoding=UTF-8';
  const args = [...flags, encoding, '-cp', classPath, program, command, server.address];
  const child = spawn('java', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  const code = await new Promise((resolve) => child.on('close', resolve));
  const output = Buffer.concat(chunks).toString();
  if (code !== 0) throw new Error(`Files.java ${command} ended with ${code}: ${output}`);
  return output.split('\n').filter(Boolean);
}

async function read(server: ApacheServer, lines: string[]): Promise<Expected> {
  const after = (word: string) =>
    lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1));
  const modes = new Map(after('mode').map((line) => [line.split(' ')[0], modeOf(line)]));
  const nodes = after('node').map((line) => JSON.parse(line));
  const lastZxid = /^Zxid: (0x[0-9a-f]+)$/m.exec(await fourLetterWord(server.port, 'srvr'))![1]!;
  return {
    peer: server.peer.name,
    lastZxid,
    sessions: after('session').map((line) => {
      const [id, timeout] = line.split(' ');
      return { id: id!, timeoutMs: Number(timeout) };
    }),
    nodes: nodes.map((node) => ({ ...node, ...modes.get(node.path) })),
  };
}

/** What a stat does not show: the server hides it from clients, but its files say so. */
function modeOf(line: string): { mode: string; ttlMs?: string } {
  const [, mode, ttlMs] = line.split(' ');
  return ttlMs === undefined ? { mode: mode! } : { mode: mode!, ttlMs };
}

function keep(
  dir: string,
  name: string,
  isWanted: (file: string) => boolean,
  expected: Expected,
): void {
  const from = join(dir, 'data', 'version-2');
  const to = join(files, name);
  rmSync(to, { recursive: true, force: true });
  mkdirSync(join(to, 'version-2'), { recursive: true });
  for (const file of readdirSync(from).filter(isWanted)) {
    const bytes = readFileSync(join(from, file));
    const kept = file.startsWith('log.') ? withoutPadding(bytes) : bytes;
    writeFileSync(join(to, 'version-2', file), kept);
  }
  const { nodes, ...rest } = expected;
  const lines = nodes.map((node) => `    ${JSON.stringify(node)}`).join(',\n');
  const head = JSON.stringify(rest).slice(0, -1);
  writeFileSync(join(to, 'expected.json'), `${head},\n  "nodes":[\n${lines}\n]}\n`);
}

/** header[16], then entries of checksum[8] length[4] bytes[length] end[1], the first empty one of which ends it. */
function withoutPadding(log: Buffer): Buffer {
  let at = 16;
  while (at + 12 <= log.length) {
    const length = log.readInt32BE(at + 8);
    if (length === 0) break;
    at += 12 + length + 1;
  }
  return log.subarray(0, at + paddingKeptBytes);
}
