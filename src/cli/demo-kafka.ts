/**
 * `drover demo kafka`: a cluster that lives, on a server of its own, scene by scene.
 *
 * Three brokers and a controller that dies and is replaced; two groups that rebalance, one of them with
 * a member that is too slow. Each scene says what happens, waits until the cluster has dealt with it, and
 * says how. All commands work on it meanwhile, from another terminal. Nothing is left when it ends.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { electPreferred, faultsOf, NdjsonSource } from '../kafka/index.ts';
import type { Context, OptionValues } from './command.ts';
import { Cast, type MemberPart, topics } from './demo-kafka-cast.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { type Cluster, readCluster } from './kafka-cluster.ts';
import { brokersView } from './kafka-cluster-views.ts';
import { lagView, readGroup } from './kafka-groups.ts';
import { print, type View } from './kafka-view.ts';
import { escaped } from './output.ts';
import { startPassingServer } from './passing-server.ts';
import { within } from './within.ts';

/** Longest that a scene waits for the cluster. */
const sceneMs = 30_000;
const lookEveryMs = 50;

// biome-ignore format: a table is read down its columns
const parts: Readonly<Record<string, MemberPart>> = {
  'billing_a':  { group: 'billing', topics: ['orders'],             mode: 'classic', workMs: 5 },
  'billing_b':  { group: 'billing', topics: ['orders'],             mode: 'classic', workMs: 5 },
  'billing_c':  { group: 'billing', topics: ['orders'],             mode: 'classic', workMs: 5 },
  'audit_a':    { group: 'audit',   topics: ['orders', 'payments'], mode: 'planned', workMs: 5 },
  'audit_slow': { group: 'audit',   topics: ['orders', 'payments'], mode: 'planned', workMs: 2_000 },
};

export async function demo(
  context: Context,
  [what]: readonly string[],
  options: OptionValues,
): Promise<number> {
  if (what !== 'kafka')
    throw new CommandError('usage', 'there is drover demo kafka, and drover demo align');
  const paceMs = 1_000 * within(options.pace, '--pace', 0, 3_600, 4);
  const rounds = within(options.rounds, '--rounds', 1, 1e9, Number.POSITIVE_INFINITY);
  const port = within(options.port, '--port', 0, 65_535, 0);
  await using server = await startPassingServer(port);
  const cast = await Cast.gather(server.address, (error) => {
    context.output.tell(`demo: ${error instanceof Error ? error.message : String(error)}`);
  });
  const play = new Play(context, cast, paceMs);
  try {
    await play.opening();
    for (let round = 0; round < rounds; round++) await play.round();
  } catch (error) {
    if (!context.signal.aborted) throw error; // Ctrl-C is how it is meant to end
  } finally {
    await cast.close();
  }
  return exitCodes.ok;
}

class Play {
  readonly #context: Context;
  readonly #cast: Cast;
  readonly #paceMs: number;

  constructor(context: Context, cast: Cast, paceMs: number) {
    this.#context = context;
    this.#cast = cast;
    this.#paceMs = paceMs;
  }

  async opening(): Promise<void> {
    const cast = this.#cast;
    this.#say('server', `a ZooKeeper server of our own at ${cast.address}`, {
      address: cast.address,
      directory: cast.directory,
    });
    this.#note(
      `in another terminal: drover kafka lag --server ${cast.address} --ndjson ${cast.directory} --watch`,
    );
    for (const id of [1, 2, 3]) await cast.addBroker(id);
    const { controller } = await this.#until(
      'a controller',
      ({ controller: seen }) => seen?.brokerId != null,
    );
    this.#say(
      'brokers',
      `brokers 1, 2 and 3 are registered; ${controller!.brokerId} is the controller, epoch ${controller!.epoch}`,
      {
        controller: controller!.brokerId,
        epoch: controller!.epoch,
      },
    );
    await cast.createTopics();
    await this.#until('leaders', isWhole);
    this.#say(
      'topics',
      `topics ${Object.keys(topics).join(' and ')} have leaders, three replicas each, all in sync`,
      {},
    );
    await this.#show(await brokersView(cast.witness, { nowMs: Date.now() }));
    await cast.startProducing();
    for (const id of ['billing_a', 'billing_b', 'audit_a', 'audit_slow']) {
      await cast.addMember(id, parts[id]!);
    }
    await this.#untilOwned('billing', ['billing_a', 'billing_b']);
    await this.#untilOwned('audit', ['audit_a', 'audit_slow']);
    this.#say(
      'groups',
      'group billing shares orders among two; group audit reads all, and one of its two is slow',
      {},
    );
    await this.#pause();
  }

  async round(): Promise<void> {
    await this.#memberJoins();
    await this.#controllerDies();
    await this.#memberDies();
    await this.#slowOne();
  }

  async #memberJoins(): Promise<void> {
    const cast = this.#cast;
    this.#say('join', 'billing_c joins: the three take two partitions each', {});
    await cast.addMember('billing_c', parts.billing_c!);
    const owners = await this.#untilOwned('billing', ['billing_a', 'billing_b', 'billing_c']);
    this.#say('joined', owners, {});
    await this.#pause();
  }

  async #controllerDies(): Promise<void> {
    const cast = this.#cast;
    const before = await this.#look();
    const dead = before.controller!.brokerId!;
    const led = leadersOf(before, dead);
    this.#say('kill', `broker ${dead}, the controller, dies: ${led} partitions lose their leader`, {
      broker: dead,
    });
    await cast.killBroker(dead);
    const after = await this.#until('another controller', ({ controller, topics: all }) => {
      const isOther = controller?.brokerId != null && controller.brokerId !== dead;
      return (
        isOther &&
        all.every(({ partitions }) =>
          partitions.every(({ leader }) => leader !== null && leader !== dead),
        )
      );
    });
    const { brokerId, epoch } = after.controller!;
    this.#say(
      'replaced',
      `broker ${brokerId} is the controller now, epoch ${epoch}; all ${led} have other leaders`,
      {
        controller: brokerId,
        epoch,
      },
    );
    await this.#show(await brokersView(cast.witness, { nowMs: Date.now() }));
    await this.#pause();
    await cast.addBroker(dead);
    await this.#until('replicas in sync', ({ topics: all }) =>
      all.every(({ partitions }) =>
        partitions.every(({ isr, replicas }) => isr.length === replicas.length),
      ),
    );
    this.#say('returned', `broker ${dead} is back and in sync, and leads nothing yet`, {
      broker: dead,
    });
    const request = allPartitions(await this.#look()).filter((one) => one.isAway);
    if (request.length > 0) await electPreferred(cast.witness, request);
    await this.#until('preferred leaders', isWhole);
    this.#say('elected', `asked for by an election, ${request.length} leaders went home`, {
      elected: request.length,
    });
    await this.#pause();
  }

  async #memberDies(): Promise<void> {
    const cast = this.#cast;
    this.#say('crash', 'billing_a dies: its session ends, and its partitions are free', {});
    await cast.killMember('billing_a');
    this.#say('taken', await this.#untilOwned('billing', ['billing_b', 'billing_c']), {});
    await this.#pause();
    await cast.addMember('billing_a', parts.billing_a!);
    await this.#untilOwned('billing', ['billing_a', 'billing_b', 'billing_c']);
    await cast.removeMember('billing_c');
    this.#say('left', await this.#untilOwned('billing', ['billing_a', 'billing_b']), {});
  }

  async #slowOne(): Promise<void> {
    const cast = this.#cast;
    this.#say(
      'lag',
      `${cast.produced} records so far; audit_slow does not keep up with its share`,
      {
        produced: cast.produced,
      },
    );
    await using source = new NdjsonSource({ directory: cast.directory, follow: false });
    const onUnknown = (why: string) => this.#note(why);
    await this.#show(
      await lagView(cast.witness, undefined, source, { nowMs: Date.now(), onUnknown }),
    );
    await this.#pause();
  }

  // ── watching and telling ──────────────────────────────────────────────────────────────────────

  #look(): Promise<Cluster> {
    return readCluster(this.#cast.witness);
  }

  async #until(what: string, isSo: (cluster: Cluster) => boolean): Promise<Cluster> {
    let cluster = await this.#look();
    await this.#wait(what, async () => {
      cluster = await this.#look();
      return isSo(cluster);
    });
    return cluster;
  }

  /** Waits until exactly these own everything that the group reads; says who has what. */
  async #untilOwned(group: string, members: readonly string[]): Promise<string> {
    let says = '';
    await this.#wait(`group ${group}`, async () => {
      const { partitions } = await readGroup(this.#cast.witness, group, await this.#look());
      const owners = new Set(partitions.map(({ consumerId }) => consumerId));
      const shares = members.map((id) => {
        const own = partitions.filter(({ consumerId }) => consumerId === id);
        return `${id} reads ${own.map(({ topic, partition }) => `${topic}/${partition}`).join(' ')}`;
      });
      says = shares.join('; ');
      return owners.size === members.length && members.every((id) => owners.has(id));
    });
    return says;
  }

  async #wait(what: string, isSo: () => Promise<boolean>): Promise<void> {
    const { signal } = this.#context;
    const deadlineMs = performance.now() + sceneMs;
    while (!(await isSo())) {
      if (performance.now() > deadlineMs) {
        throw new CommandError('bug', `the demo waited in vain for ${what}`);
      }
      await delay(lookEveryMs, undefined, { signal });
    }
  }

  async #pause(): Promise<void> {
    await this.#context.output.drained();
    await delay(this.#paceMs, undefined, { signal: this.#context.signal });
  }

  #say(scene: string, text: string, facts: object): void {
    const { output } = this.#context;
    if (output.isJson) output.record({ scene, text, ...facts });
    else output.line(`${output.paint('cyan', '●')} ${escaped(text)}`);
  }

  #note(text: string): void {
    if (!this.#context.output.isJson) this.#context.output.line(`  ${escaped(text)}`);
  }

  async #show(view: View): Promise<void> {
    if (!this.#context.output.isJson) print(this.#context.output, view);
    await this.#context.output.drained();
  }
}

function allPartitions({ topics: all }: Cluster) {
  return all.flatMap(({ topic, partitions }) =>
    partitions.map(({ name, leader, replicas }) => ({
      topic,
      partition: Number(name),
      isAway: leader !== replicas[0],
    })),
  );
}

function leadersOf({ topics: all }: Cluster, id: number): number {
  return all.flatMap(({ partitions }) => partitions).filter(({ leader }) => leader === id).length;
}

/** Every topic is there, led by its preferred replica, with all in sync. */
function isWhole({ topics: all }: Cluster): boolean {
  return (
    all.length === Object.keys(topics).length &&
    all.every(({ topic, partitions }) => {
      const isFull = partitions.length === topics[topic];
      return isFull && partitions.every((one) => faultsOf(one).length === 0);
    })
  );
}
