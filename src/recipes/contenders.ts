/**
 * Who stands in a line: for people who ask why a lock is not free.
 *
 * A snapshot, and no more: by the time it is read, the line may be another. `ageMs` counts from when the
 * node was made, that is from when its owner asked, by the server's calendar and ours; where the two
 * differ, it is off by as much.
 */

import { type CallOptions, isZkError } from '../client/index.ts';
import { childOf } from '../protocol/index.ts';
import { systemClock } from '../support/index.ts';
import type { Line } from './line.ts';

export interface Contender {
  readonly path: string;
  readonly name: string;
  /** The session that owns the node. */
  readonly sessionId: bigint;
  /** What its owner wrote there: `host:pid` unless it chose otherwise, empty from Curator. */
  readonly data: Buffer;
  /** How long ago it joined the line. */
  readonly ageMs: number;
  /** What its token is, or will be. */
  readonly fencingToken: bigint;
}

/**
 * Nodes asked for in one breath. Each has an answer of its own: what an owner wrote may fill a frame, and
 * nobody knows before it is read.
 */
const atOnceMax = 100;

/** All who stand in a line, first to last, and how many names there were before some of them left. */
export async function contenders(
  line: Line,
  wallMs = systemClock.wallMs(),
  options: CallOptions = {},
): Promise<{ readonly found: Contender[]; readonly count: number }> {
  const names = await line.names(options);
  return { found: await describe(line, names, wallMs, options), count: names.length };
}

/** These names of a line, in their order. Those that leave while we ask are left out. */
export async function describe(
  line: Line,
  names: readonly string[],
  wallMs: number,
  options: CallOptions = {},
): Promise<Contender[]> {
  const found: Contender[] = [];
  for (let at = 0; at < names.length; at += atOnceMax) {
    const some = names.slice(at, at + atOnceMax);
    const read = await Promise.all(some.map((name) => contender(line, name, wallMs, options)));
    found.push(...read.filter((one) => one !== null));
  }
  return found;
}

async function contender(
  line: Line,
  name: string,
  wallMs: number,
  options: CallOptions,
): Promise<Contender | null> {
  const path = childOf(line.path, name);
  try {
    const { data, stat } = await line.client.get(path, options);
    return {
      path,
      name,
      sessionId: stat.ephemeralOwner,
      data: data ?? Buffer.alloc(0),
      ageMs: Math.max(0, wallMs - Number(stat.ctime)),
      fencingToken: stat.czxid,
    };
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return null;
    throw error;
  }
}
