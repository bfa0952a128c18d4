import { defineConfig } from 'vitest/config';
import { olderReleases, releasesToFallBackOn } from './releases.ts';

/** The client's own stories. */
const stories = [
  'acls',
  'multi',
  'nodes',
  'older-servers',
  'outcomes',
  'sessions',
  'subtree',
  'watch-stream',
  'watches',
].map((name) => `test/stories/${name}.test.ts`);

// biome-ignore lint/style/noDefaultExport: Vitest reads its settings from there
export default defineConfig({
  test: {
    testTimeout: 60_000,
    hookTimeout: 120_000,
    maxWorkers: 2,
    setupFiles: ['test/patience.ts'],
    // What commands write in a test is nobody's audit.
    env: { DROVER_JOURNAL: '' },
    expect: { poll: { timeout: 15_000 } },
    projects: olderReleases.map((version) => ({
      extends: true as const,
      test: {
        name: `apache-${version}`,
        include: releasesToFallBackOn.includes(version) ? ['test/stories/**/*.test.ts'] : stories,
        globalSetup: ['test/versions/setup.ts'],
      },
    })),
  },
});
