/**
 * Holders that are stopped past the end of their session, and then write all the same.
 *
 * Each is stopped (SIGSTOP, with all its process) after it has read a fenced file under its lock, until
 * another has had the lock, and has written. Then it wakes and writes, without a look at anything. What
 * must hold: the file refuses it, and the holder's own grant says that it is over.
 */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, isZkError } from '../../src/client/index.ts';
import { Lock, NotHeldError } from '../../src/recipes/index.ts';
import { startServer } from '../../src/server/index.ts';
import { FencedFile } from './fenced-file.ts';

export interface PausedReport {
  readonly pauses: number;
  readonly refused: number;
  readonly broken: readonly string[];
}

/** Holders in one process: they are stopped together. */
const locks = 50;
const sessionTimeoutMs = 600;

type Said =
  | { readonly type: 'ready' }
  | { readonly type: 'inside'; readonly tokens: bigint[] }
  | { readonly type: 'wrote'; readonly accepted: boolean[]; readonly isHeld: boolean[] }
  | { readonly type: 'failed'; readonly error: string };

export async function pausedHolders(options: {
  readonly pauses: number;
  readonly onPause?: (count: number) => void;
}): Promise<PausedReport> {
  const broken: string[] = [];
  let [pauses, refused] = [0, 0];
  const folder = mkdtempSync(join(tmpdir(), 'drover-fenced-'));
  const server = await startServer({
    port: 0,
    inMemory: true,
    tickTimeMs: 100,
    limits: { connectionsPerAddressMax: 0 },
  });
  const next = await connect(server.address, { sessionTimeoutMs: 2_000, renew: true });
  const count = Math.min(locks, options.pauses);
  const args = [server.address, folder, String(count), String(sessionTimeoutMs)];
  const child = fork(new URL('holder.ts', import.meta.url), args, {
    execArgv: ['--import', import.meta.resolve('tsx')],
    serialization: 'advanced',
  });
  const kill = () => child.kill('SIGKILL');
  process.on('exit', kill);
  const hear = async <T extends Said['type']>(type: T): Promise<Extract<Said, { type: T }>> => {
    const [said] = (await once(child, 'message')) as [Said];
    if (said.type === type) return said as Extract<Said, { type: T }>;
    throw new Error(`the holder said ${said.type}: ${(said as { error?: string }).error}`);
  };
  try {
    await hear('ready');
    while (pauses < options.pauses && broken.length === 0) {
      child.send('hold');
      const { tokens } = await hear('inside');

      child.kill('SIGSTOP');
      const written = await Promise.all(
        tokens.map((token, i) =>
          writeNext(new Lock(next, `/fenced/${i}`), fileOf(folder, i), token),
        ),
      );
      child.send('write');
      child.kill('SIGCONT');

      const { accepted, isHeld } = await hear('wrote');
      for (const [i, token] of tokens.entries()) {
        const who = `holder ${i} with token ${token}`;
        if (accepted[i]) broken.push(`${who} wrote after ${written[i]!.token}`);
        else refused += 1;
        if (isHeld[i]) broken.push(`${who} thinks that it holds the lock`);
        const { value } = fileOf(folder, i).get();
        if (value !== written[i]!.value) broken.push(`file ${i} has ${value}`);
        pauses += 1;
        options.onPause?.(pauses);
      }
    }
  } finally {
    process.off('exit', kill);
    const ended = once(child, 'exit');
    kill();
    await ended;
    await next.close();
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
  return { pauses, refused, broken };
}

const fileOf = (folder: string, i: number) => new FencedFile(join(folder, String(i)));

/** Our own session, too, may end by itself on a busy machine. */
const triesMax = 50;

/** The next holder reads and writes one more, under a token that must be higher. */
async function writeNext(lock: Lock, file: FencedFile, before: bigint) {
  for (let tries = 1; ; tries++) {
    try {
      return await lock.hold(({ fencingToken: token }) => {
        const seen = file.read(token);
        if (seen === null || token <= before) throw new Error(`${token} comes after ${before}`);
        file.write(token, seen + 1);
        return { token, value: seen + 1 };
      });
    } catch (error) {
      const isOver = error instanceof NotHeldError || isZkError(error);
      if (!isOver || tries === triesMax) throw error;
    }
  }
}
