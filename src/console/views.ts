/**
 * What the console shows, page by page, as it travels: JSON alone. See `api.ts` for how numbers are
 * written. Null is "unknown", and never 0 or -1 in its place; a list that was cut says so.
 * Each page's answers stand in a file of their own, named for it.
 */

export type * from './views-alignment.ts';
export type * from './views-changes.ts';
export type * from './views-clients.ts';
export type * from './views-kafka.ts';
export type * from './views-metrics.ts';
export type * from './views-overview.ts';
export type * from './views-page.ts';
export type * from './views-recipes.ts';
export type * from './views-tree.ts';
