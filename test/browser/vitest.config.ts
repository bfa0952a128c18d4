/** The stories that run in a real Chromium: `npx vitest run --config test/browser/vitest.config.ts`. */
import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';

// biome-ignore lint/style/noDefaultExport: Vitest reads its settings from there
export default defineConfig({
  root: resolve(import.meta.dirname, '../..'),
  test: {
    name: 'browser',
    include: ['test/browser/*.test.ts'],
    // A browser and a whole world to show in it: slow where two cores are shared.
    testTimeout: 90_000,
    hookTimeout: 120_000,
    // What commands write in a test is nobody's audit.
    env: { DROVER_JOURNAL: '' },
    expect: { poll: { timeout: 20_000 } },
    fileParallelism: false,
  },
});
