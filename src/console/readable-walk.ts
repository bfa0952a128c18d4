/**
 * A walk through a subtree that goes around what is not ours to see: one closed node must not hide all others.
 *
 * In: a session and a root, which has to be readable. Out: nodes, level by level, as `client.walk` gives
 * them, without those that are closed to us and all below these; `onClosed` is told of each such node.
 */

import { type CallOptions, type Client, isZkError, type Walked } from '../client/index.ts';
import { childOf } from '../protocol/index.ts';

const walkAtOnce = 64;

export async function* readableWalk(
  client: Client,
  root: string,
  call: CallOptions,
  onClosed: () => void,
): AsyncGenerator<Walked, void, undefined> {
  const visit = async (path: string, depth: number) => {
    try {
      return await client.childrenAndStat(path, call);
    } catch (error) {
      if (depth === 0 || !isZkError(error, 'NO_NODE', 'NO_AUTH')) throw error;
      if (error.code === 'NO_AUTH') onClosed();
      return null;
    }
  };
  let level = [root];
  for (let depth = 0; level.length > 0; depth++) {
    const below: string[] = [];
    for (let at = 0; at < level.length; at += walkAtOnce) {
      const paths = level.slice(at, at + walkAtOnce);
      const seen = await Promise.all(paths.map((path) => visit(path, depth)));
      for (const [i, node] of seen.entries()) {
        if (node === null) continue;
        const path = paths[i]!;
        for (const name of node.children) below.push(childOf(path, name));
        yield { path, stat: node.stat, depth };
      }
    }
    level = below;
  }
}
