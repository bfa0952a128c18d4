/**
 * What `drover` has written to servers, command by command: one line of JSON each, in a file of the user's,
 * $XDG_STATE_HOME/drover/journal.ndjson. The console reads it, so that its audit has the command lines too.
 *
 * In: what a command wrote (`write-notes.ts`). Out: the same, to a console of the same user, by the servers
 * that it was written to. DROVER_JOURNAL names another file, and empty none. Nobody else can read the file.
 * It grows to `fileBytesMax`, then one older one is kept beside it.
 *
 * It is no proof: it holds what was written by this user's drover on this machine, and whoever can write
 * the file can change it. Programs and other clients are not in it. A line that can't be read is skipped.
 */

import { appendFile, open, rename, stat } from 'node:fs/promises';
import { hostname, userInfo } from 'node:os';
import { dirname } from 'node:path';
import { type Client, parseServers } from '../client/index.ts';
import type { JournalLine } from '../console/index.ts';
import type { Context } from './command.ts';
import { journalFile } from './journal-file.ts';
import { makeFolders } from './make-folders.ts';
import type { WriteNotes } from './write-notes.ts';

const fileBytesMax = 8 * 1024 * 1024;
/** What is read of what is there when a console starts, and at most at once later. */
const readBytesMax = 4 * 1024 * 1024;

type Environment = Context['environment'];

export interface Journaled {
  readonly command: string;
  readonly exitCode: number;
  readonly servers: string;
  readonly notes: WriteNotes;
}

export async function appendJournal(
  file: string,
  { command, exitCode, servers, notes }: Journaled,
): Promise<void> {
  const line: JournalLine = {
    version: 1,
    atMs: Date.now(),
    who: `${userName()} at ${hostname()}`,
    command,
    exitCode,
    servers: hostsOf(servers),
    count: notes.count,
    writes: notes.writes,
  };
  await makeFolders(dirname(file), 0o700);
  const size = await stat(file).then(
    (found) => found.size,
    () => 0,
  );
  if (size > fileBytesMax) await rename(file, `${file}.1`);
  // One write of the whole line at the end of the file: lines of several processes do not mix.
  await appendFile(file, `${JSON.stringify(line)}\n`, { mode: 0o600 });
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? 'unknown'}`; // one without a name, as in some containers
  }
}

/** By address, so that localhost and 127.0.0.1 are the same place. */
function hostsOf(servers: string): string[] {
  const same = new Set(['localhost', '127.0.0.1', '::1']);
  return parseServers(servers).hosts.map(
    ({ name, port }) =>
      `${same.has(name.toLowerCase()) ? 'localhost' : name.toLowerCase()}:${port}`,
  );
}

/** What was written to the servers of a client by command lines, as it comes. */
export class JournalReader {
  readonly #file: string;
  readonly #hosts: ReadonlySet<string>;
  readonly #sinceMs: number;
  #at: { ino: number; offset: number } | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  /** @param sinceMs of a server that keeps nothing: what is older was written to another. */
  constructor(file: string, servers: string, sinceMs = 0) {
    this.#file = file;
    this.#hosts = new Set(hostsOf(servers));
    this.#sinceMs = sinceMs;
  }

  /** Lines that were not handed out before, oldest first. */
  news(): Promise<JournalLine[]> {
    const turn = this.#turn.then(() => this.#read());
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #read(): Promise<JournalLine[]> {
    const found = await inode(this.#file);
    if (found === null) return [];
    const at = this.#at;
    const older = `${this.#file}.1`;
    const lines: string[] = [];
    if (at === undefined) {
      const before = await inode(older);
      if (before !== null && found.size < readBytesMax) {
        lines.push(
          ...(await this.#from(older, Math.max(0, before.size - readBytesMax + found.size))),
        );
      }
      lines.push(...(await this.#from(this.#file, Math.max(0, found.size - readBytesMax))));
    } else if (at.ino !== found.ino || at.offset > found.size) {
      if ((await inode(older))?.ino === at.ino) lines.push(...(await this.#from(older, at.offset)));
      lines.push(...(await this.#from(this.#file, 0)));
    } else if (at.offset < found.size) {
      lines.push(...(await this.#from(this.#file, at.offset)));
    }
    return lines.flatMap((line) => this.#ours(line));
  }

  /** Whole lines alone: the last may still be on its way. */
  async #from(file: string, offset: number): Promise<string[]> {
    const handle = await open(file, 'r');
    try {
      const { ino, size } = await handle.stat();
      const start = Math.max(offset, size - 2 * readBytesMax);
      const buffer = Buffer.alloc(Math.max(0, size - start));
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, start);
      const end = buffer.lastIndexOf(0x0a, bytesRead - 1) + 1;
      this.#at = { ino, offset: start + end };
      return buffer.subarray(0, end).toString('utf8').split('\n');
    } finally {
      await handle.close();
    }
  }

  #ours(text: string): JournalLine[] {
    if (text === '') return [];
    let line: JournalLine;
    try {
      line = JSON.parse(text) as JournalLine;
    } catch {
      return []; // the tail of one that was cut off at the front
    }
    const isOurs =
      line.version === 1 &&
      Array.isArray(line.servers) &&
      Array.isArray(line.writes) &&
      line.atMs >= this.#sinceMs &&
      line.servers.some((host) => this.#hosts.has(host));
    return isOurs ? [line] : [];
  }
}

async function inode(file: string): Promise<{ ino: number; size: number } | null> {
  try {
    const { ino, size } = await stat(file);
    return { ino, size };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** For a console: undefined where no journal is kept. */
export function journalSource(
  environment: Environment,
  client: Client,
  servers: string,
  sinceMs?: number,
) {
  const file = journalFile(environment);
  if (file === null) return undefined;
  const reader = new JournalReader(file, servers, sinceMs);
  return async () => (await reader.news()).map((line) => below(line, client.chroot));
}

/** Paths as the console has them: below its chroot, and the others not at all. */
function below(line: JournalLine, chroot: string): JournalLine {
  if (chroot === '') return line;
  const writes = line.writes.flatMap((write) => {
    if (write.path === chroot) return [{ ...write, path: '/' }];
    if (!write.path.startsWith(`${chroot}/`)) return [];
    return [{ ...write, path: write.path.slice(chroot.length) }];
  });
  return { ...line, writes };
}
