/** kazoo's own test suite, unmodified, on our server: what passes on a single Apache server passes here. */

import { expect, test } from 'vitest';
import { failsOnApache } from './kazoo/known.ts';
import { prepareKazoo, runKazoo } from './kazoo/suite.ts';

const missing = await prepareKazoo();
const limitMs = 9 * 60_000;

test.skipIf(missing !== undefined && process.env.CI !== 'true')(
  missing ?? "kazoo's tests pass that pass on a single Apache server",
  { timeout: limitMs + 60_000 },
  async () => {
    expect(missing).toBeUndefined();

    const { outcomes, output } = await runKazoo('ours', limitMs);

    const of = (wanted: string) =>
      [...outcomes.keys()].filter((name) => outcomes.get(name) === wanted);
    const failed = of('failed').filter((name) => !(name in failsOnApache));
    console.log(
      `kazoo: ${outcomes.size} tests, ${of('passed').length} passed, ${of('skipped').length} skipped, ` +
        `${of('failed').length} failed, ${failed.length} of them not on Apache`,
    );
    expect(failed, output.slice(-8_000)).toEqual([]);
    expect(of('passed').length).toBeGreaterThan(450);
  },
);
