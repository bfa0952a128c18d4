/**
 * Long lists of children that change all the time: the console asks ZooKeeper for one of those only about
 * once a second, and meanwhile gives the one it has. Whoever was given such a list asks again.
 */
import type { ChildrenView } from '../../src/console/api.ts';

/** Shorter ones are always as they are now. */
const longNames = 10_000;

/** After this, the console has asked for it anew. */
export const longListMs = 1_200;

/** The node has other children by now than the list. */
export function isLate(view: ChildrenView): boolean {
  return view.total >= longNames && view.total !== view.stat.numChildren;
}
