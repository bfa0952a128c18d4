/** What callers hand to a cache, checked before anything is sent. */

import { ArgumentError, type Client } from '../client/index.ts';
import { pathFault } from '../protocol/index.ts';

export function checkCacheOptions(
  client: Client,
  path: unknown,
  options: { readonly scope?: unknown; readonly nodesMax?: unknown; readonly bytesMax?: unknown },
): void {
  if (typeof client?.addWatch !== 'function') {
    throw new ArgumentError('client', 'a Client is wanted, as connect() gives it');
  }
  checkNodePath('path', path);
  const { scope = 'subtree', nodesMax = 1, bytesMax = 1 } = options;
  if (scope !== 'node' && scope !== 'children' && scope !== 'subtree') {
    throw new ArgumentError('scope', 'node, children or subtree is wanted');
  }
  for (const [name, value] of Object.entries({ nodesMax, bytesMax })) {
    if (typeof value !== 'number' || !(value >= 1)) {
      throw new ArgumentError(name, 'a number of at least 1 is wanted');
    }
  }
}

export function checkNodePath(argument: string, path: unknown): asserts path is string {
  if (typeof path !== 'string') throw new ArgumentError(argument, 'a path is wanted, as a string');
  const fault = pathFault(path);
  if (fault !== null) {
    throw new ArgumentError(argument, `${fault}: ${JSON.stringify(path.slice(0, 200))}`);
  }
}

/** One name in a path: what a node below a fixed parent may be called. */
export function checkNodeName(argument: string, name: unknown): asserts name is string {
  if (typeof name !== 'string' || name === '' || name.includes('/')) {
    throw new ArgumentError(argument, 'a name is wanted: text, not empty, without a slash');
  }
  checkNodePath(argument, `/${name}`);
}
