/** How a server is doing, in one colour: away, behind or busy, well. */
import type { ServerView } from '../../src/console/api.ts';

const behindMax = 100;
const outstandingMax = 10;

export function serverTone(server: ServerView): 'good' | 'warn' | 'bad' {
  if (server.error !== null) return 'bad';
  const isSlow = (server.behind ?? 0) > behindMax || (server.outstanding ?? 0) > outstandingMax;
  return isSlow ? 'warn' : 'good';
}
