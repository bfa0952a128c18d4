/**
 * `drover demo align`: five partitions read in step by three members, on a server of its own.
 *
 * One partition has most of the records, one runs dry and comes back, and the member that everybody
 * waits for dies half way: the others take over what it had, from the last cut on. A terminal shows how
 * far each partition is and where the limit stands; elsewhere each scene is a line, with a picture where
 * something changes. All commands work on it meanwhile. Nothing is left when it ends.
 */

import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Aligner, align, type LaneStatus } from '../align/index.ts';
import { type Client, connect } from '../client/index.ts';
import { keyOf, NdjsonSource } from '../kafka/index.ts';
import { startServer } from '../server/index.ts';
import type { Context, OptionValues } from './command.ts';
import { barOf, bars } from './demo-align-picture.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { drawFrame, enter, leave, print } from './kafka-view.ts';
import { within } from './within.ts';

const group = 'demo';
const startMs = Date.UTC(2026, 0, 1, 12);
const spanMs = 30 * 60_000;
const topics = { orders: 3, clicks: 2 };
/** Records in each partition. The last one runs dry after a third, and comes back at the end. */
// biome-ignore format: a table is read down its columns
const sizes: Readonly<Record<string, number>> = {
  'orders/0': 1_800,
  'orders/1':   300,
  'orders/2':   150,
  'clicks/0':   400,
  'clicks/1':   200,
};
const dry = { topic: 'clicks', partition: '1' };
const frameMs = 200;
const sceneMs = 60_000;

export async function demoAlign(context: Context, options: OptionValues): Promise<number> {
  const paceMs = within(options.pace, '--pace', 0, 3_600, 4);
  const port = within(options.port, '--port', 0, 65_535, 0);
  await using server = await startServer({ port, inMemory: true, extendedTypesEnabled: true });
  const directory = await mkdtemp(join(tmpdir(), 'drover-demo-'));
  const show = new Show(context, server.address, directory, paceMs);
  const isLive = context.output.isTty && !context.output.isJson;
  if (isLive) context.output.write(enter);
  try {
    await show.play(isLive);
  } catch (error) {
    if (!context.signal.aborted) throw error; // Ctrl-C is how one leaves early
  } finally {
    await show.close();
    await rm(directory, { recursive: true, force: true });
    if (isLive) context.output.write(leave);
  }
  if (isLive) print(context.output, { parts: show.told, records: [] });
  return exitCodes.ok;
}

interface Member {
  readonly name: string;
  readonly client: Client;
  readonly aligner: Aligner;
  readonly source: NdjsonSource;
  readonly loop: Promise<void>;
}

class Show {
  readonly told: string[] = [];
  readonly #context: Context;
  readonly #address: string;
  readonly #directory: string;
  readonly #paceMs: number;
  readonly #members = new Map<string, Member>();
  readonly #seen = new Map<string, number>();
  #limitMs: number | null = null;
  #periods = 0;
  #isHalf = false;
  #isLive = false;
  #failure: unknown;

  constructor(context: Context, address: string, directory: string, paceMs: number) {
    this.#context = context;
    this.#address = address;
    this.#directory = directory;
    this.#paceMs = paceMs;
  }

  async play(isLive: boolean): Promise<void> {
    this.#isLive = isLive;
    const address = this.#address;
    const directory = this.#directory;
    this.#say('server', `a ZooKeeper server of our own at ${address}`, { address, directory });
    this.#say('hint', `in another terminal: drover align watch ${group} --server ${address}`, {});
    const [first, rest] = [Math.floor(sizes[keyOf(dry)]! / 2), Math.ceil(sizes[keyOf(dry)]! / 2)];
    for (const [key, count] of Object.entries(sizes)) {
      const isDry = key === keyOf(dry);
      await writeFile(this.#file(key), isDry ? lines(first, 0, 1 / 3) : lines(count, 0, 1));
    }
    await Promise.all(['ann', 'bob', 'cid'].map((name) => this.#join(name)));
    await this.#until('owners', () => this.#isShared());
    this.#scene('joined', 'ann, bob and cid share five partitions; nobody may be a minute ahead', {
      owners: this.#owners(),
    });
    await this.#until('an idle partition', () => this.#lane(keyOf(dry))?.state === 'idle');
    this.#scene('idle', `${keyOf(dry)} has run dry: it holds nobody back`, { partition: dry });
    await this.#until('half of it', () => this.#isHalf);
    await this.#crash();
    await appendFile(this.#file(keyOf(dry)), lines(rest, 5 / 6, 1));
    await this.#until('new owners', () => this.#isShared());
    this.#scene('taken', 'the others have taken over, from the last cut on', {
      owners: this.#owners(),
    });
    await this.#until('the records that came', () => this.#lane(keyOf(dry))?.state === 'reading');
    this.#scene('back', `${keyOf(dry)} has records again, and is waited for`, { partition: dry });
    await this.#until('the end', () => this.#isThrough());
    const [all, read] = [this.#seen.size, [...this.#seen.values()].reduce((a, b) => a + b, 0)];
    this.#scene('end', `${all} records, ${read - all} of them twice; ${this.#periods} periods`, {
      records: all,
      twice: read - all,
      periods: this.#periods,
    });
  }

  #file(key: string): string {
    return join(this.#directory, `${key.replace('/', '-')}.ndjson`);
  }

  async #join(name: string): Promise<void> {
    const client = await connect(this.#address, { sessionTimeoutMs: 6_000 });
    const source = new NdjsonSource({ directory: this.#directory, pollMs: 50 });
    const aligner = align(client, {
      group,
      source,
      topics,
      mode: { period: '1m' },
      idleAfter: 500,
      batchRecordsMax: 50,
      consumerId: name,
      onPeriod: ({ start, end }) => {
        this.#periods += (end - start) / 60_000;
        if (this.#context.output.isJson)
          this.#context.output.record({ scene: 'period', start, end });
      },
    });
    aligner.on('limit', ({ limitMs }) => {
      this.#limitMs = limitMs;
      if (limitMs !== null && limitMs >= startMs + spanMs / 2) this.#isHalf = true;
    });
    const member = { name, client, source, aligner, loop: this.#work(name, aligner) };
    this.#members.set(name, member);
    await aligner.settled();
  }

  /** Works on a record for as long as the pace says. */
  async #work(name: string, aligner: Aligner): Promise<void> {
    try {
      for await (const batch of aligner) {
        await delay(batch.records.length * this.#paceMs);
        if (!(await batch.done())) continue;
        for (const { offset } of batch.records) {
          const id = `${keyOf(batch)} ${offset}`;
          this.#seen.set(id, (this.#seen.get(id) ?? 0) + 1);
        }
      }
    } catch (error) {
      if (this.#members.has(name)) this.#failure = error; // who was killed is told by what it does next
    }
  }

  /** Whom everybody waits for dies: nothing is handed over, and its session is over. */
  async #crash(): Promise<void> {
    const lanes = this.#lanes().sort(([, a], [, b]) => (a.positionMs ?? 0) - (b.positionMs ?? 0));
    const slowest = lanes.find(([, lane]) => lane.state === 'reading') ?? lanes[0]!;
    const [name] = slowest;
    const member = this.#members.get(name)!;
    this.#members.delete(name);
    await member.client.close();
    this.#scene('crash', `${name} dies, with ${keyOf(slowest[1])}, which all wait for`, {
      member: name,
      partition: keyOf(slowest[1]),
    });
    await this.#end(member);
  }

  async #end({ aligner, loop, client, source }: Member): Promise<void> {
    await aligner.close();
    await loop;
    await source.close();
    await client.close();
  }

  async close(): Promise<void> {
    const members = [...this.#members.values()];
    this.#members.clear();
    await Promise.all(members.map((member) => this.#end(member)));
  }

  // ── what is to be seen ────────────────────────────────────────────────────────────────────────

  #lanes(): [string, LaneStatus][] {
    return [...this.#members.values()].flatMap(({ name, aligner }) =>
      aligner.status().partitions.map((lane): [string, LaneStatus] => [name, lane]),
    );
  }

  #lane(key: string): LaneStatus | undefined {
    return this.#lanes().find(([, lane]) => keyOf(lane) === key)?.[1];
  }

  #owners(): Record<string, string> {
    const entries = this.#lanes().map(([name, lane]) => [keyOf(lane), name] as const);
    return Object.fromEntries(entries.sort());
  }

  /** Every partition is somebody's who knows where it is, and everybody has some. */
  #isShared(): boolean {
    const lanes = this.#lanes();
    const owners = new Set(lanes.map(([name]) => name));
    const isKnown = lanes.every(([, { state }]) => state !== 'opening');
    return (
      lanes.length === Object.keys(sizes).length && owners.size === this.#members.size && isKnown
    );
  }

  #isThrough(): boolean {
    const total = Object.values(sizes).reduce((sum, size) => sum + size, 0);
    return this.#seen.size === total;
  }

  #picture(): string[] {
    const rows = this.#lanes().map(([name, lane]) => {
      const state = lane.isHeldBack ? 'paused' : lane.state;
      return { name: keyOf(lane), owner: name, state, positionMs: lane.positionMs };
    });
    const { output } = this.#context;
    const width = Math.max(20, Math.min(70, output.columns - 32));
    return bars(
      rows.sort((a, b) => (a.name < b.name ? -1 : 1)),
      { startMs, endMs: startMs + spanMs, limitMs: this.#limitMs, width },
      (state, text) => output.paint(barOf[state] ?? 'reset', text),
    );
  }

  /** A line, and a picture of how things stand. */
  #scene(scene: string, text: string, facts: object): void {
    this.#say(scene, text, { ...facts, limitMs: this.#limitMs });
    if (!this.#context.output.isJson && !this.#isLive) {
      print(this.#context.output, { parts: [...this.#picture(), ''], records: [] });
    }
  }

  #say(scene: string, text: string, facts: object): void {
    const { output } = this.#context;
    this.told.push(text);
    if (output.isJson) output.record({ scene, text, ...facts });
    else if (!this.#isLive) output.line(text);
  }

  async #until(what: string, isThere: () => boolean): Promise<void> {
    const { signal, output } = this.#context;
    const beganMs = performance.now();
    let drawnMs = Number.NEGATIVE_INFINITY;
    while (!isThere()) {
      if (this.#failure !== undefined) throw this.#failure;
      const nowMs = performance.now();
      // How long it takes is the pace's; without one, something is wrong.
      if (nowMs - beganMs > sceneMs + this.#paceMs * 100_000) {
        throw new CommandError('bug', `the demo waited in vain for ${what}`);
      }
      if (this.#isLive && nowMs - drawnMs >= frameMs) {
        drawnMs = nowMs;
        const parts = [...this.told, '', ...this.#picture()];
        drawFrame(output, { parts, records: [] });
        await output.drained();
      }
      await delay(20, undefined, { signal });
    }
  }
}

/** Records in a part of the span, evenly. */
function lines(count: number, from: number, to: number): string {
  const all = Array.from({ length: count }, (_, i) => {
    const share = from + ((to - from) * i) / count;
    return `${JSON.stringify({ timestamp: startMs + Math.floor(share * spanMs), value: i })}\n`;
  });
  return all.join('');
}
