/** Between tries of what a lost link or an ending session has broken off. */

export { pause } from '../support/index.ts';

export const retryBackoff = { firstMs: 10, maxMs: 1_000 };
