/** Stories of the Alignment page: a replay is paused, let on step by step and let go, by mouse and by keys. */
import { beforeAll, describe, expect, test } from 'vitest';
import { alignPaths, parseLimit } from '../../src/align/index.ts';
import { isBrowserMissing } from './browser.ts';
import { faultsOf } from './faults.ts';
import { useStage } from './stage.ts';
import { plantReplay, type World } from './world.ts';

const paths = alignPaths('replay-jan');
const periodMs = 300_000;

describe.skipIf(isBrowserMissing())('Alignment', () => {
  const stage = useStage();
  let world: World;

  beforeAll(async () => {
    world = await stage.startWorld();
    stage.endsWith(await plantReplay(world.server.address));
  });

  const limit = async () => parseLimit((await world.client.get(paths.limit)).data, paths.limit);
  const config = async () => String((await world.client.get(paths.config)).data);
  const shown = (ms: number | null) => new Date(ms!).toISOString().slice(0, 19).replace('T', ' ');

  test('a replay is held where it is, goes on by a period, and is let go; the audit takes it back', {
    timeout: 60_000,
  }, async () => {
    const { tab, complaints, close } = await stage.openTab();
    await tab.goto(world.url('/alignment?name=replay-jan'));
    await tab.getByRole('button', { name: 'Pause', exact: true }).click();

    await tab.getByText(/^Paused by hand at /).waitFor();
    await tab.getByRole('link', { name: 'replay-jan · paused' }).waitFor();
    await tab.locator('.bars .limit.held').first().waitFor();
    const paused = await limit();
    expect(paused.rule.holdMs).toBeLessThanOrEqual(paused.limitMs!);
    expect(await tab.locator('.big').first().textContent()).toContain(shown(paused.limitMs));
    expect(await tab.getByRole('button', { name: 'Pause', exact: true }).count()).toBe(0);
    expect(await faultsOf(tab)).toEqual([]);

    await tab.keyboard.press('s');
    const next = shown(paused.limitMs! + periodMs);
    await tab.getByText(`Paused by hand at ${next}`).waitFor();
    expect((await limit()).limitMs).toBe(paused.limitMs! + periodMs);

    await tab.keyboard.press('c');
    await tab.getByRole('button', { name: 'Pause', exact: true }).waitFor();
    await expect.poll(config).not.toContain('hold_ms');
    await tab.keyboard.press('p');
    await tab.getByText(/^Paused by hand at /).waitFor();

    await tab.goto(world.url('/audit'));
    const row = tab.locator('tr', { hasText: 'replay-jan: pause' }).first();
    await row.getByRole('button').click();
    await tab.getByRole('dialog').getByRole('button', { name: 'Undo', exact: true }).click();
    await expect.poll(config).not.toContain('hold_ms');
    expect(complaints).toEqual([]);
    await close();
  });

  test('who may only look has no way to hold it', async () => {
    const viewer = await stage.openTab();
    const { tab, close } = viewer;
    await tab.route('**/api/session*', async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ json: { ...(await answer.json()), role: 'viewer' } });
    });
    await tab.goto(world.url('/alignment?name=replay-jan'));
    await tab.getByText('period 5 min').first().waitFor();

    expect(await tab.getByRole('button', { name: 'Step' }).count()).toBe(0);
    await tab.keyboard.press('p');
    await tab.keyboard.press('?');
    await tab.getByRole('dialog').getByText('next theme').waitFor();

    expect(await tab.getByText('pause the replay').count()).toBe(0);
    expect(await config()).not.toContain('hold_ms');
    await close();
  });
});
