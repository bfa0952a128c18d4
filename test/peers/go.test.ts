/**
 * The Go client on our server: its own test suite, unmodified, passes here where it passes on a single
 * Apache server, and a story that it tells comes out the same.
 */

import { expect, test } from 'vitest';
import { startDroverServe } from './drover-serve.ts';
import { newestApache, prepareGo, runGo, tellStory } from './go/suite.ts';
import { startApache } from './zookeeper.ts';

const apache = await newestApache();
const missing =
  apache === undefined ? "the Go client's tests need an Apache ZooKeeper" : await prepareGo();
const isLeftOut = missing !== undefined && process.env.CI !== 'true';
const limitMs = 9 * 60_000;

test.skipIf(isLeftOut)(
  missing ?? "the Go client's own tests pass that pass on a single Apache server",
  { timeout: limitMs + 60_000 },
  async () => {
    expect(missing).toBeUndefined();

    const [ours, theirs] = await Promise.all([runGo('ours', limitMs), runGo(apache!, limitMs)]);

    const names = [...new Set([...ours.outcomes.keys(), ...theirs.outcomes.keys()])];
    const of = (wanted: string) => names.filter((name) => ours.outcomes.get(name) === wanted);
    const notOnApache = names.filter(
      (name) => theirs.outcomes.get(name) === 'passed' && ours.outcomes.get(name) !== 'passed',
    );
    console.log(
      `go-zookeeper: ${names.length} tests, ${of('passed').length} passed, ` +
        `${of('skipped').length} skipped, ${of('failed').length} failed, ` +
        `${notOnApache.length} of them not on Apache`,
    );
    expect(notOnApache, ours.output.slice(-8_000)).toEqual([]);
    expect([...theirs.outcomes.values()].filter((one) => one === 'passed').length).toBeGreaterThan(
      35,
    );
  },
);

test.skipIf(isLeftOut)(
  'a story told by the Go client is the same on ours and on Apache',
  { timeout: 180_000 },
  async () => {
    expect(missing).toBeUndefined();
    const often = { 'znode.container.checkIntervalMs': '500' };
    const settings = { tickTime: '500', extendedTypesEnabled: 'true', ...often };
    const jvm = Object.entries(often).map(([key, value]) => `-D${key}=${value}`);
    await using ours = await startDroverServe(settings);
    await using theirs = await startApache(apache!, { tickTimeMs: 500, jvm });

    const told = await tellStory(ours.address);

    expect(told.slice(-2)).toEqual(['done', 'ended with 0']);
    expect(told).toEqual(await tellStory(theirs.address));
  },
);
