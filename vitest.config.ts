import { defineConfig } from 'vitest/config';

/** Two projects: each room's own tests, and the stories that run on our server and, by `npm run test:peers`, on real ones. */
export default defineConfig({
  test: {
    testTimeout: 20_000,
    hookTimeout: 20_000,
    setupFiles: ['test/patience.ts'],
    // What commands write in a test is nobody's audit.
    env: { DROVER_JOURNAL: '' },
    expect: { poll: { timeout: 15_000 } },
    projects: [
      {
        extends: true,
        test: { name: 'unit', include: ['src/**/*.test.ts', 'test/*.test.ts'] },
      },
      {
        extends: true,
        test: { name: 'stories', include: ['test/stories/**/*.test.ts'] },
      },
    ],
  },
});
