/** Releases of Apache ZooKeeper that are old and still in use: the last of each line. */
export const olderReleases = ['3.4.14', '3.5.10', '3.6.4', '3.7.2'] as const;

/** Those that lack ops that the client falls back from: every story runs on them, and not the client's alone. */
export const releasesToFallBackOn: readonly string[] = ['3.4.14', '3.5.10'];

/** The release that `npm run test:peers` runs stories on as well, and which: those in which a fallback can matter. */
export const oldestRelease = '3.4.14';
export const oldestStories = [
  'acls',
  'kafka-broker',
  'multi',
  'nodes',
  'older-servers',
  'outcomes',
  'recipes-cache',
  'recipes-closed',
  'recipes-election',
  'recipes-lock',
  'recipes-queue',
  'sessions',
  'subtree',
  'watch-stream',
  'watches',
].map((name) => `test/stories/${name}.test.ts`);
