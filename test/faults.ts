/** What stories break things by, and how they look at what came of it. */

import { type Client, connect } from '../src/client/index.ts';
import { Link, type LinkFrame, MovableClock } from '../src/testing/index.ts';
import { fourLetterWord } from './peers/four-letter-word.ts';
import type { Zk } from './zk.ts';

/** Numbers of ops on the wire. */
export const opCodes = {
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  children: 8,
  multi: 14,
  create: 15,
  /** What servers before 3.5 are sent in its place. */
  olderCreate: 1,
  createContainer: 19,
} as const;

/** Whether a request is of this op, in the words of its server. */
export function isOp(request: Buffer, code: number): boolean {
  const said = request.readInt32BE(4);
  return said === code || (code === opCodes.create && said === opCodes.olderCreate);
}

export interface LostReplies {
  /** How many are lost, one after the other. */
  readonly times?: number;
  /** At the moment of each cut. */
  readonly lost?: () => void;
}

/** Cuts the link when the first reply to a request of this op comes, which then does not arrive. */
export function loseReply(
  zk: Zk,
  code: number,
  { times = 1, lost = () => {} }: LostReplies = {},
): void {
  let left = times;
  const asked = new Set<string>();
  const key = ({ connection, bytes }: LinkFrame) => `${connection} ${bytes.readInt32BE(0)}`;
  zk.link.onFrame = (frame) => {
    if (frame.index === 0) return 'pass';
    if (frame.direction === 'toServer') {
      if (isOp(frame.bytes, code)) asked.add(key(frame));
    } else if (left > 0 && asked.has(key(frame))) {
      left -= 1;
      lost();
      return 'cut';
    }
    return 'pass';
  };
}

/**
 * Cuts the link when the first request of this op is sent, which then does not reach the server. With a
 * path, the first that has it in it.
 */
export function loseRequest(link: Pick<Link, 'onFrame'>, code: number, path = ''): void {
  link.onFrame = ({ index, direction, bytes }) => {
    if (index === 0 || direction !== 'toServer' || !isOp(bytes, code)) return 'pass';
    if (!bytes.includes(path)) return 'pass';
    link.onFrame = undefined;
    return 'cut';
  };
}

export interface Apart {
  readonly link: Link;
  readonly clock: MovableClock;
  readonly client: Client;
}

/** A client with a link and a clock of its own: what befalls it befalls nobody else. */
export async function connectApart(zk: Zk, sessionTimeoutMs: number): Promise<Apart> {
  const [address, chroot] = zk.directAddress.split(/(?=\/)/, 2) as [string, string];
  const [host, port] = address.split(':') as [string, string];
  const link = await Link.to({ host, port: Number(port) });
  const clock = new MovableClock();
  const client = await connect(link.address + chroot, { renew: true, sessionTimeoutMs, clock });
  return { link, clock, client };
}

/** What it failed with; fails itself where nothing did. */
export function failureOf<E>(work: Promise<unknown>): Promise<E> {
  return work.then(
    () => {
      throw new Error('it was done');
    },
    (error) => error,
  );
}

/** Whether it has been granted by now, as far as the server has said anything. */
export function watchFor<G>(waiting: Promise<G>): {
  readonly isGranted: boolean;
  readonly waiting: Promise<G>;
} {
  const state = { isGranted: false, waiting };
  void waiting.then(
    () => {
      state.isGranted = true;
    },
    () => {}, // who waits hears of it
  );
  return state;
}

/** The paths of this story, without its chroot, on which the server itself holds a data watch. */
export async function watchedPaths(zk: Zk): Promise<string[]> {
  const [, port, chroot] = /:(\d+)(\/.*)$/.exec(zk.directAddress)!;
  const text = await fourLetterWord(Number(port), 'wchp');
  const paths = text.split('\n').filter((line) => line.startsWith(`${chroot}/`));
  return paths.map((path) => path.slice(chroot!.length)).sort();
}
