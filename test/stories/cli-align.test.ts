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

  expect(said.code).toBe(1);
  expect(said.err).toContain('orders/0 offset 0: field ts has no time; left out');
  expect(said.err).toContain('a record was left out: 1 with no time, in field ts');
  expect(said.err).toContain('accept them with --allow-skipped');
  expect(await readFile(join(out(), 'quarantine.ndjson'), 'utf8')).toBe('{"id":"odd"}\n');
  expect(byStart(await readPeriods(out()))).toEqual(byStart(expected(60_000)));
});

test('records that are left out are no failure where as many are accepted', async () => {
  const { inputs } = await data();
  const file = join(dir, 'in', 'orders', '0.ndjson');
  await writeFile(file, `{"id":"odd"}\n${await readFile(file, 'utf8')}{"id":"even"}\n`);

  const fewer = await runs(inputs, '--allow-skipped', '1');
  await runInProcess(zk.address, ['align', 'forget', 'g', '--yes']);
  const enough = await runs(inputs, '--allow-skipped', '2');
  await runInProcess(zk.address, ['align', 'forget', 'g', '--yes']);
  const delivered = await runs(inputs, '--quarantine', 'deliver');

  expect([fewer.code, enough.code, delivered.code]).toEqual([1, 0, 0]);
  expect(fewer.err).toContain('2 records were left out');
  expect(enough.err).toContain('2 records were left out');
  expect(delivered.err).not.toContain('left out');
});

test('a wrong field ends a short run with exit code 1, a summary, and all records in quarantine', async () => {
  const { inputs, count } = await data();

  const said = await runs(inputs, '--event-time', 'tss', '--out', out());

  expect(said.code).toBe(1);
  expect(said.err.split('\n').filter((line) => line.includes('has no time'))).toHaveLength(10);
  expect(said.err).toContain(`${count} records were left out: ${count} with no time, in field tss`);
  const kept = await readFile(join(out(), 'quarantine.ndjson'), 'utf8');
  expect(kept.split('\n').slice(0, -1)).toHaveLength(count);
  expect(said.out).toContain(`quarantine.ndjson ${count}`);
  expect(await readdir(out())).toEqual(['quarantine.ndjson']);
});

test('a wrong field stops a run once the first thousand records of a partition have no time', async () => {
  await mkdir(join(dir, 'in'));
  const line = (i: number) => `{"id":${i},"ts":${startMs + i}}\n`;
  await writeFile(
    join(dir, 'in', '0.ndjson'),
    Array.from({ length: 3_000 }, (_, i) => line(i)),
  );
  const inputs = ['--input', `orders=${join(dir, 'in')}`];

  const wrong = await runs(inputs, '--event-time', 'tss', '--out', out());
  const right = await runs(inputs, '--out', out());

  expect(wrong.code).toBe(2);
  expect(wrong.err).toMatch(/the first 1\s000 records of orders\/0 have no time in field tss/);
  expect(wrong.err).toContain('give the right field with --event-time');
  expect(wrong.err).toContain(`{"id":0,"ts":${startMs}}`);
  expect(wrong.err.split('\n')).toHaveLength(14); // the start, ten records, the rest of them, the reason
  expect(right.code).toBe(0);
  const [[, lines]] = byStart(await readPeriods(out())) as [[number, string[]]];
  expect(lines).toHaveLength(3_000); // nothing of the first run counts as read, or is kept
  expect(await readdir(out())).toEqual([`${startMs}.ndjson`]);
});

test('a run says which period counts, that the group is at its end, and how to begin anew', async () => {
  const { inputs, count } = await data();
  const first = await runs(inputs);

  const again = await runs(inputs, '--period', '5m');
  await runInProcess(zk.address, ['align', 'forget', 'g', '--yes']);
  const anew = await runs(inputs, '--period', '5m');

  expect(first.err).toContain('g: 5 partitions of orders, clicks, 1m at a time');
  expect(again.code).toBe(0);
  expect(again.err).toContain('by the stored rule: period of 1m');
  expect(again.err).toContain('--period 5m does not count');
  expect(again.err).toContain('drover align set-period g 5m');
  expect(again.err).toContain('g has come to its end in an earlier run');
  expect(again.err).toMatch(/nothing was left to read.*to begin anew: drover align forget g/);
  expect(anew.lines).toHaveLength(count);
  expect(anew.err).toContain('5m at a time');
});

test('rewind sets a group back to a cut, and a run goes on from there', async () => {
  const { inputs, expected } = await data();
  await runs(inputs);
  const align = (...words: string[]) => runInProcess(zk.address, ['align', ...words]);
  const until = startMs + 3 * 60_000;

  const declined = await runInProcess(zk.address, ['align', 'rewind', 'g'], {
    ask: async () => 'n',
  });
  const back = await align('rewind', 'g', new Date(until).toISOString(), '--yes', '--json');
  const none = await align('rewind', 'other', '--yes');
  const early = await align('rewind', 'g', '1971-01-01', '--yes');
  const again = await runs(inputs);

  expect(declined.code).toBe(9);
  expect([none.code, early.code]).toEqual([6, 6]);
  expect(early.err).toContain('keeps no cut that early');
  expect(back.records[0]).toMatchObject({ group: 'g', limitMs: until });
  const wanted = byStart(expected(60_000)).filter(([start]) => start >= until);
  expect(again.lines.toSorted()).toEqual(wanted.flatMap(([, lines]) => lines).sort());
});

test('plan judges times as a run does, and says which field and record are suspect', async () => {
  await mkdir(join(dir, 'a'));
  const odd = startMs + 500 * 86_400_000;
  const at = (seconds: number) => startMs + seconds * 1_000;
  const all = [at(0), at(1), 4_102_444_800_000, at(2), odd, at(3), at(4), '"x"'];
  await writeFile(join(dir, 'a', '0.ndjson'), all.map((ts) => `{"ts":${ts}}\n`).join(''));
  const inputs = ['--input', `a=${join(dir, 'a')}`, '--event-time', 'ts', '--period', '60s'];

  const text = await runInProcess(zk.address, ['align', 'plan', ...inputs]);
  const json = await runInProcess(zk.address, ['align', 'plan', ...inputs, '--json']);
  const run = await runInProcess(zk.address, ['align', 'run', '--group', 'g', ...inputs]);

  expect(text.out).not.toContain('--out-of-order');
  expect(text.out).toContain(
    '! a record has a time in the future in field ts (first: a-0 offset 2, 2100-01-01T00:00:00.000Z)',
  );
  expect(text.out).toContain(
    `! a record has a time far ahead of the records behind it in field ts (first: a-0 offset 4, ${new Date(odd).toISOString()})`,
  );
  expect(text.out).toContain('! a record has no time in field ts (first: a-0 offset 7)');
  expect(json.records.at(-1)).toMatchObject({
    periods: 1,
    outOfOrderMs: 0,
    withoutTime: 3,
    suspects: [
      { reason: 'future', offset: 2, timeMs: 4_102_444_800_000 },
      { reason: 'ahead', offset: 4, timeMs: odd },
      { reason: 'missing', offset: 7, timeMs: null },
    ],
  });
  expect(run.err).toContain('3 records were left out');
  expect(run.lines).toHaveLength(5);
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
