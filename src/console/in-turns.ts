/** Work over a list, so many at once: no page asks ZooKeeper for everything in one breath. */
export async function inTurns<T, R>(
  list: readonly T[],
  atOnce: number,
  work: (one: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < list.length; at += atOnce) {
    results.push(...(await Promise.all(list.slice(at, at + atOnce).map(work))));
  }
  return results;
}
