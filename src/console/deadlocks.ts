/**
 * Deadlocks: sessions that wait for each other in a circle, each holding the lock that another waits for.
 *
 * In: locks with who holds and who waits. Out: circles, each once. Only what is shown of a lock is known, so
 * a circle that leads over its 51st waiter is not seen.
 */

import type { ContenderView, RecipesView, RecipeView } from './views.ts';

type Deadlock = RecipesView['deadlocks'][number];

/** Circles of sessions, each of which holds what the one before it waits for. */
export function deadlocksIn(recipes: readonly RecipeView[]): Deadlock[] {
  const waitsFor = new Map<string, { path: string; holders: string[] }[]>();
  for (const { path, contenders, kind } of recipes) {
    if (kind !== 'lock' && kind !== 'readWriteLock') continue;
    const sessionsOf = (state: ContenderView['state']) =>
      contenders.filter((one) => one.state === state).flatMap(({ session }) => session ?? []);
    const holders = [...new Set(sessionsOf('holds'))];
    for (const session of sessionsOf('waits')) {
      waitsFor.set(session, [...(waitsFor.get(session) ?? []), { path, holders }]);
    }
  }
  const found: Deadlock[] = [];
  const told = new Set<string>();
  for (const start of waitsFor.keys()) {
    const circle = circleFrom(start, waitsFor);
    if (circle === null) continue;
    const key = circle
      .map(({ session }) => session)
      .sort()
      .join(' ');
    if (told.has(key)) continue;
    told.add(key);
    found.push(
      circle.map(({ session, waits }, i) => {
        const wanted = circle[(i + circle.length - 1) % circle.length]!.waits;
        return { session, holds: wanted, waitsFor: waits };
      }),
    );
  }
  return found;
}

/** The way from a session along what it waits for, if it leads back to it. */
function circleFrom(
  start: string,
  waitsFor: ReadonlyMap<string, readonly { path: string; holders: readonly string[] }[]>,
): { session: string; waits: string }[] | null {
  const seen = new Set<string>();
  const stack: { session: string; way: { session: string; waits: string }[] }[] = [
    { session: start, way: [] },
  ];
  for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
    for (const { path, holders } of waitsFor.get(at.session) ?? []) {
      for (const holder of holders) {
        const way = [...at.way, { session: at.session, waits: path }];
        if (holder === start) {
          if (way.length > 1) return way;
          continue; // who waits for itself has asked twice, and is not in a circle with others
        }
        if (seen.has(holder)) continue;
        seen.add(holder);
        stack.push({ session: holder, way });
      }
    }
  }
  return null;
}
