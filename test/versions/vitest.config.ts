import { defineConfig } from 'vitest/config';
import { olderReleases } from './releases.ts';

/** The client's own stories, on releases that test:peers leaves out. */
const stories = ['acls', 'multi', 'nodes', 'outcomes', 'sessions', 'subtree', 'watches'];

// biome-ignore lint/style/noDefaultExport: Vitest reads its settings from there
export default defineConfig({
  test: {
    testTimeout: 60_000,
    hookTimeout: 120_000,
    maxWorkers: 2,
    setupFiles: ['test/patience.ts'],
    expect: { poll: { timeout: 15_000 } },
    projects: olderReleases.map((version) => ({
      extends: true as const,
      test: {
        name: `apache-${version}`,
        include: [...stories, 'watch-stream'].map((name) => `test/stories/${name}.test.ts`),
        globalSetup: ['test/versions/setup.ts'],
      },
    })),
  },
});
