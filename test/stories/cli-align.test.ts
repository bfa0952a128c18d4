/** `drover align`, on ours and on Apache's. */

import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { NdjsonSource } from '../../src/kafka/index.ts';
import { byStart, makeData, readPeriods } from '../align-data.ts';
import { runInProcess } from '../cli-run.ts';
import { startZk, type Zk } from '../zk.ts';

const startMs = 1_700_000_040_000;
let dir: string;
let zk: Zk;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'drover-align-'));
  zk = await startZk();
});

afterEach(async () => {
  await zk[Symbol.asyncDispose]();
  await rm(dir, { recursive: true, force: true });
});

const data = () =>
  makeData(join(dir, 'in'), {
    topics: { orders: 3, clicks: 2 },
    records: 600,
    startMs,
    spanMs: 20 * 60_000,
    seed: 7,
    gap: [0.4, 0.7],
    hasEmpty: true,
  });
const out = () => join(dir, 'out');
const runs = (inputs: readonly string[], ...more: string[]) =>
  runInProcess(zk.address, [
    'align',
    'run',
    '--group',
    'g',
    ...inputs,
    '--event-time',
    'ts',
    '--period',
    '60s',
    ...more,
  ]);

test('plan counts periods, records, the slowest partition, and what is out of order', async () => {
  await mkdir(join(dir, 'a'));
  const lines = (times: (number | string)[]) => times.map((ts) => `{"m":{"ts":${ts}}}`).join('\n');
  await writeFile(join(dir, 'a', 'part-0.ndjson'), lines([0, 30, 200, 190]));
  await writeFile(join(dir, 'a', 'part-1.ndjson'), `${lines([10, '"x"'])}\n`);
  const words = [
    'align',
    'plan',
    '--input',
    `a=${join(dir, 'a')}`,
    '--event-time',
    'm.ts',
    '--unit',
    's',
  ];

  const json = await runInProcess(zk.address, [...words, '--period', '60s', '--json']);
  const text = await runInProcess(zk.address, [...words, '--period', '1m']);

  expect(json.records.at(-1)).toMatchObject({
    topics: 1,
    partitions: 2,
    records: 6,
    periods: 4,
    emptyPeriods: 2,
    slowest: 'a-0',
    outOfOrderMs: 10_000,
    withoutTime: 1,
  });
  expect(json.records[0]).toMatchObject({ topic: 'a', partition: '0', records: 4, periods: 2 });
  expect(text.out).toContain('6 records · slowest: a-0 (67 %) · 4 periods of 1m · 2 empty');
  expect(text.out).toContain('--out-of-order 10s');
});

test('a run puts every record into the file of its period, in order, and leaves nothing else', async () => {
  const { inputs, expected } = await data();

  const said = await runs(inputs, '--out', out());

  expect([said.code, said.err]).toEqual([0, expect.stringContaining('come to its end')]);
  expect(byStart(await readPeriods(out()))).toEqual(byStart(expected(60_000)));
  expect((await readdir(out())).filter((name) => !/^\d+\.ndjson$/.test(name))).toEqual([]);
  const [name] = (await readdir(out())).sort();
  const times = (await readFile(join(out(), name!), 'utf8')).split('\n').slice(0, -1);
  const order = times.map((line) => JSON.parse(line).ts);
  expect(order).toEqual([...order].sort((a, b) => a - b));
});

test('from and to take a piece of the data, in the plan and in the run', async () => {
  const { inputs, expected } = await data();
  const piece = [
    '--from',
    new Date(startMs + 120_000).toISOString(),
    '--to',
    `${startMs + 300_000}`,
  ];
  const wanted = byStart(expected(60_000)).slice(2, 5);
  const count = wanted.reduce((sum, [, lines]) => sum + lines.length, 0);

  const plan = await runInProcess(zk.address, [
    ...['align', 'plan', ...inputs, '--event-time', 'ts', '--period', '60s', ...piece, '--json'],
  ]);
  const done = await runs(inputs, '--out', out(), ...piece);
  const odd = await runs(inputs, '--from', '2026-01-02', '--to', '2026-01-01');

  expect(plan.records.at(-1)).toMatchObject({ records: count, periods: 3 });
  expect(done.code).toBe(0);
  expect(byStart(await readPeriods(out()))).toEqual(wanted);
  expect([odd.code, odd.err]).toEqual([2, expect.stringContaining('not after --from')]);
});

test('several runs share the partitions', async () => {
  const { inputs, expected } = await data();

  const said = await Promise.all(
    [1, 2, 3].map((i) => runs(inputs, '--out', out(), '--name', `m${i}`)),
  );

  // What was said stands beside the code, so that a failure tells why.
  expect(said.map(({ code, err }) => [code, err])).toEqual(
    said.map(() => [0, expect.stringContaining('come to its end')]),
  );
  expect(byStart(await readPeriods(out()))).toEqual(byStart(expected(60_000)));
});

test('standard output has each record, period by period', async () => {
  const { inputs, expected, count } = await data();

  const text = await runs(inputs);
  await runInProcess(zk.address, ['align', 'forget', 'g', '--yes']);
  const json = await runs(inputs, '--json');

  const periods = byStart(expected(60_000));
  expect(text.lines).toHaveLength(count);
  let at = 0;
  for (const [, lines] of periods) {
    expect(text.lines.slice(at, at + lines.length).sort()).toEqual(lines);
    at += lines.length;
  }
  expect(json.records.map(({ value }) => value).sort()).toEqual([...text.lines].sort());
  expect(json.records[0]).toMatchObject({
    topic: expect.any(String),
    offset: 0,
    timeMs: expect.any(Number),
  });
});

test('a second run has nothing left to do, and one after more was written does that alone', async () => {
  const { inputs, count } = await data();
  const first = await runs(inputs);

  const again = await runs(inputs);
  const file = join(dir, 'in', 'orders', '1.ndjson');
  const before = await readFile(file, 'utf8');
  const late = startMs + 30 * 60_000;
  await writeFile(file, `${before.trimEnd()}\n{"id":"new","ts":${late}}\n`);
  const more = await runs(inputs);

  expect([first, again].map(({ code, lines }) => [code, lines.length])).toEqual([
    [0, count],
    [0, 0],
  ]);
  expect(more.lines).toEqual([`{"id":"new","ts":${late}}`]);
});

test('a record without a time is told of, and kept beside the periods', async () => {
  const { inputs, expected } = await data();
  const file = join(dir, 'in', 'orders', '0.ndjson');
  const before = await readFile(file, 'utf8');
  await writeFile(file, `{"id":"odd"}\n${before}`);

  const said = await runs(inputs, '--out', out());

  expect(said.code).toBe(0);
  expect(said.err).toMatch(/orders\/0 offset 0: .*missing/);
  expect(await readFile(join(out(), 'quarantine.ndjson'), 'utf8')).toBe('{"id":"odd"}\n');
  expect(byStart(await readPeriods(out()))).toEqual(byStart(expected(60_000)));
});

test('Ctrl-C leaves word how far it came, and the next run goes on there', async () => {
  const { inputs, count } = await data();
  const stop = new AbortController();
  const one = await runInProcess(
    zk.address,
    ['align', 'run', '--group', 'g', ...inputs, '--event-time', 'ts', '--period', '60s'],
    { signal: stop.signal, onOut: () => stop.abort() },
  );

  const two = await runs(inputs);

  expect(one.code).toBe(130);
  const all = new Set([...one.lines, ...two.lines]);
  expect(all.size).toBe(count);
  expect(one.lines.length).toBeGreaterThan(0);
  expect(two.lines.length).toBeLessThan(count);
});

test('watch says where the group is; set-period and stop change how it goes on', async () => {
  const { inputs } = await data();
  const none = await runInProcess(zk.address, ['align', 'watch', 'g']);
  const end = new AbortController();
  const running = runInProcess(
    zk.address,
    [
      'align',
      'run',
      '--group',
      'g',
      ...inputs,
      '--event-time',
      'ts',
      '--period',
      '60s',
      '--follow',
    ],
    { signal: end.signal },
  );
  const watch = () =>
    runInProcess(zk.address, [
      'align',
      'watch',
      'g',
      '--json',
      '--count',
      '2',
      '--interval',
      '0.05',
    ]);

  await expect
    .poll(async () => (await watch()).records?.at(-1)?.partitions?.length, { timeout: 15_000 })
    .toBe(5);
  const seen = (await watch()).records.at(-1);
  const text = await runInProcess(zk.address, ['align', 'watch', 'g']);
  const set = await runInProcess(zk.address, [
    'align',
    'set-period',
    'g',
    '5m',
    '--look-ahead',
    '2',
  ]);
  const refused = await runInProcess(zk.address, ['align', 'forget', 'g', '--yes']);
  const stopped = await runInProcess(zk.address, ['align', 'stop', 'g', '--json']);
  await expect
    .poll(async () => (await watch()).records.at(-1).rule.mode, { timeout: 15_000 })
    .toBe('off');

  expect([none.code, refused.code]).toEqual([6, 6]);
  expect(refused.err).toContain('is running');
  expect(seen).toMatchObject({ group: 'g', rule: { mode: 'period', stepMs: 60_000 } });
  expect(seen.members).toHaveLength(1);
  expect(seen.leader).toBe(seen.members[0].id);
  expect(text.lines[0]).toMatch(/^limit .*ETA .* waiting \d+ % of the time$/);
  expect(text.out).toMatch(/PARTITION +STATE +POSITION +OFFSET +OWNER/);
  expect(set.out).toBe('g: period of 1m → period of 5m, 2 ahead\n');
  expect(stopped.records[0]).toMatchObject({ rule: { mode: 'off', stepMs: 300_000 } });
  end.abort();
  expect((await running).code).toBe(130);
}, 40_000);

test('pause holds a run where it is; step lets it on by periods; continue lets it go', async () => {
  const at = (minutes: number) => startMs + minutes * 60_000;
  const lines = (minutes: readonly number[]) =>
    minutes.map((m) => `${JSON.stringify({ ts: at(m) })}\n`).join('');
  const halves = Array.from({ length: 20 }, (_, i) => i / 2);
  await mkdir(join(dir, 'in'));
  await writeFile(join(dir, 'in', '0.ndjson'), lines(halves));
  await writeFile(join(dir, 'in', '1.ndjson'), lines([0]));
  const align = (...words: string[]) => runInProcess(zk.address, ['align', ...words]);
  const seen = async () => (await align('watch', 'g', '--json')).records.at(-1);
  const heldAt = (minutes: number) =>
    expect.poll(seen, { timeout: 15_000 }).toMatchObject({
      ...{ isPaused: true, limitMs: at(minutes), states: { reading: 0, paused: 2 } },
    });
  const none = await align('pause', 'g');
  let printed = '';
  const end = new AbortController();
  const words = ['run', '--group', 'g', '--input', `t=${join(dir, 'in')}`, '--event-time', 'ts'];
  const running = runInProcess(
    zk.address,
    ['align', ...words, '--period', '60s', '--follow', '--idle-after', '1h'],
    {
      signal: end.signal,
      onOut: (all) => {
        printed = all;
      },
    },
  );
  await expect.poll(async () => (await seen())?.limitMs, { timeout: 15_000 }).toBe(at(1)); // held back by the second

  const paused = await align('pause', 'g');
  await expect.poll(seen, { timeout: 15_000 }).toMatchObject({ isPaused: true });
  await appendFile(join(dir, 'in', '1.ndjson'), lines(halves.slice(1)));
  await heldAt(1);
  const text = await align('watch', 'g');
  const again = await align('pause', 'g', '--json');
  const stepped = await align('step', 'g', '--json');
  await heldAt(2);
  await align('step', '--group', 'g', '3');
  await heldAt(5);
  const longer = await align('set-period', 'g', '5m');
  const free = await align('continue', 'g');
  await expect
    .poll(async () => (await seen()).limitMs, { timeout: 15_000 })
    .toBeGreaterThanOrEqual(at(9));
  await expect.poll(() => printed.trim().split('\n').length, { timeout: 15_000 }).toBe(40);
  end.abort();

  const iso = (minutes: number) => new Date(at(minutes)).toISOString();
  expect([none.code, none.err]).toEqual([6, expect.stringContaining('no such group')]);
  expect(paused.out).toBe(`g: period of 1m → period of 1m, held by hand at ${iso(1)}\n`);
  expect(text.out).toContain(`paused by hand at ${iso(1)} · align step g, align continue g`);
  expect(text.out).not.toContain('held back by');
  expect(again.records[0]).toMatchObject({ before: { holdMs: at(1) }, rule: { holdMs: at(1) } });
  expect(stepped.records[0]).toMatchObject({ before: { holdMs: at(1) }, rule: { holdMs: at(2) } });
  expect(longer.out).toContain(`→ period of 5m, held by hand at ${iso(5)}`);
  expect(free.out).toContain('→ period of 5m\n');
  expect((await align('step', 'g', 'many')).code).toBe(2);
  expect((await running).lines).toHaveLength(40);
}, 60_000);

test('how much is done is told from the files that are read', async () => {
  const { inputs } = await data();
  await runs(
    inputs
      .filter((word) => word !== '--input')
      .map((word, i) => (i === 0 ? `--input=${word}` : word)),
  );

  const [seen] = (await runInProcess(zk.address, ['align', 'watch', 'g', '--json'])).records;

  expect(seen).toMatchObject({ isFinished: true, share: 1, heldBackBy: null });
});

test('records that come late for their period are in its file all the same', async () => {
  const late = await makeData(join(dir, 'late'), {
    topics: { t: 3 },
    records: 400,
    startMs,
    spanMs: 10 * 60_000,
    seed: 3,
    disorderMs: 90_000,
  });

  const strict = await runs(late.inputs, '--out', out());
  await runInProcess(zk.address, ['align', 'forget', 'g', '--yes']);
  const patient = await runs(late.inputs, '--out', `${out()}2`, '--out-of-order', '90s');

  expect([strict.code, patient.code]).toEqual([0, 0]);
  expect(byStart(await readPeriods(out()))).toEqual(byStart(late.expected(60_000)));
  expect(byStart(await readPeriods(`${out()}2`))).toEqual(byStart(late.expected(60_000)));
});

test('what is missing is said', async () => {
  const { inputs } = await data();
  const say = async (...words: string[]) => {
    const { code, err } = await runInProcess(zk.address, ['align', ...words]);
    return [code, err];
  };

  expect(await say('dance')).toEqual([2, expect.stringContaining('plan, run, watch')]);
  expect(await say('run', ...inputs, '--period', '60s')).toEqual([
    2,
    expect.stringContaining('--group'),
  ]);
  expect(await say('run', '--group', 'g', ...inputs)).toEqual([
    2,
    expect.stringContaining('--period'),
  ]);
  expect(await say('plan', '--period', '60s')).toEqual([2, expect.stringContaining('--input')]);
  expect(await say('plan', '--period', '60s', '--input', 'x')).toEqual([
    2,
    expect.stringContaining('TOPIC=DIR'),
  ]);
  expect(await say('plan', '--period', '60s', '--input', `x=${dir}/none`)).toEqual([
    2,
    expect.stringContaining('ENOENT'),
  ]);
  expect(await say('plan', '--period', 'soon', ...inputs)).toEqual([
    2,
    expect.stringContaining('--period'),
  ]);
  expect(await say('run', 'g')).toEqual([2, expect.stringContaining('TOPIC=DIR')]);
  expect(await say('set-period', 'g', '5m')).toEqual([6, expect.stringContaining('no such group')]);
});

test('what was opened to be read is closed, also where the run is refused or has no server', async () => {
  const { inputs } = await data();
  const closed = vi.spyOn(NdjsonSource.prototype, 'close');
  const ask = async (...more: string[]) => {
    closed.mockClear();
    const { code } = await runs(inputs, ...more);
    return { code, closed: closed.mock.calls.length > 0 };
  };
  try {
    expect(await ask('--layout', 'seed', '--others', 'x')).toEqual({ code: 2, closed: true });
    expect(await ask('--quarantine', 'no-such')).toEqual({ code: 2, closed: true });
    const nobody = ['--server', '127.0.0.1:1', '--connect-timeout', '100'];
    expect(await ask('--layout', 'seed', ...nobody)).toEqual({ code: 7, closed: true });
  } finally {
    closed.mockRestore();
  }
});
