import { defineConfig } from 'vitest/config';
import { findZooKeepers } from './test/peers/zookeeper.ts';
import { isReleaseHere } from './test/peers/zookeeper-fetch.ts';
import { oldestRelease, oldestStories } from './test/versions/releases.ts';

/**
 * The stories once more for every real ZooKeeper that is here, a part of them for the oldest release that
 * is supported (`npm run test:versions` has all), the tests that need a real server anyway, and those of the
 * console's page, which need a real browser.
 */
export default defineConfig(async () => {
  const { found } = await findZooKeepers();
  return {
    test: {
      testTimeout: 60_000,
      hookTimeout: 120_000,
      maxWorkers: 2,
      setupFiles: ['test/patience.ts'],
      // What commands write in a test is nobody's audit.
      env: { DROVER_JOURNAL: '' },
      expect: { poll: { timeout: 15_000 } },
      projects: [
        ...found.map((peer) => ({
          extends: true as const,
          test: {
            name: peer.name,
            include: ['test/stories/**/*.test.ts'],
            globalSetup: ['test/peers/setup.ts'],
          },
        })),
        ...[oldestRelease].filter(isReleaseHere).map((version) => ({
          extends: true as const,
          test: {
            name: `apache-${version}`,
            include: [...oldestStories],
            globalSetup: ['test/versions/setup.ts'],
          },
        })),
        {
          extends: true as const,
          test: { name: 'peers', include: ['test/peers/**/*.test.ts'] },
        },
        {
          extends: true as const,
          test: {
            name: 'browser',
            include: ['test/browser/*.test.ts'],
            testTimeout: 120_000,
            hookTimeout: 180_000,
          },
        },
      ],
    },
  };
});
