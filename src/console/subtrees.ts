/** Paths of several nodes at once: which stand for others, and which stay where they belong. */

import { childOf } from '../protocol/index.ts';
import { ConsoleError } from './console-error.ts';

/** Without those that go with another. */
export function topmost(paths: readonly string[]): string[] {
  const all = [...new Set(paths)];
  return all.filter((path) => !all.some((other) => path.startsWith(`${other}/`)));
}

/** Below the path and nowhere else: what is imported names no node outside. */
export function joined(root: string, below: string): string {
  if (below === '') return root;
  const names = below.replace(/^\//, '').split('/');
  if (names.some((name) => name === '' || name === '.' || name === '..')) {
    throw new ConsoleError('BAD_INPUT', `${below}: a path below ${root} is wanted`);
  }
  return names.reduce(childOf, root);
}
