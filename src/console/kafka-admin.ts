/**
 * What was asked of a Kafka cluster and stands in ZooKeeper: settings of brokers, topics, clients, users and
 * addresses that were changed while it runs, partitions that are being moved, elections that wait.
 *
 * In: /config, /admin and the topics. Out: lists, each up to a limit that is said when met. Values that are
 * secrets (SCRAM keys, passwords, JAAS lines) are never read out: their names are shown, and a mark.
 * A move of newer brokers stands in its topic (replicas that come and go), one of older brokers in
 * /admin/reassign_partitions: both are shown, and which of them it is.
 */

import type { Client } from '../client/index.ts';
import {
  desanitise,
  type LayoutProblem,
  layout08,
  type PartitionSeen,
  type Reassignment,
  type TopicSeen,
} from '../kafka/index.ts';
import { childOf } from '../protocol/index.ts';
import { inTurns } from './in-turns.ts';
import { orNull } from './tree.ts';
import type { ConfigKind, ConfigRow, ConfigsView, MoveRow, MovesView } from './views.ts';

const entitiesMax = 5_000;
const readAtOnce = 64;
const keptMs = 3_000;
const movesMax = 1_000;
const problemsMax = 100;
/** By the names that Kafka gives them. What is stored of passwords is encrypted, and shown all the same to nobody. */
const secret = /password|secret|^SCRAM-|jaas|\bkey(store)?\.key$|private\.key/i;

// biome-ignore format: a table is read down its columns
const folders: readonly (readonly [ConfigKind, string])[] = [
  ['broker', '/config/brokers'],
  ['topic',  '/config/topics'],
  ['user',   '/config/users'],
  ['client', '/config/clients'],
  ['ip',     '/config/ips'],
];

interface Read {
  readonly rows: readonly ConfigRow[];
  readonly problems: readonly LayoutProblem[];
  readonly skipped: number;
}

export class KafkaAdmin {
  readonly #client: Client;
  #read: Promise<Read> | undefined;
  #readAtMs = Number.NEGATIVE_INFINITY;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Something below /config changed. */
  forget(): void {
    this.#read = undefined;
  }

  async configs(page: { offset: number; limit: number; filter: string }): Promise<ConfigsView> {
    const { rows, problems, skipped } = await this.#kept();
    const wanted = page.filter.toLowerCase();
    const matching = rows.filter(({ kind, name, values }) => {
      const text = values.map((one) => `${one.name} ${one.value ?? ''}`).join(' ');
      return `${kind} ${name} ${text}`.toLowerCase().includes(wanted);
    });
    return {
      rows: matching.slice(page.offset, page.offset + page.limit),
      total: rows.length,
      matching: matching.length,
      skipped,
      problems: problems.map(({ path, why }) => ({ path, why })),
    };
  }

  /** @param topics as they were seen just now. */
  async moves(topics: Iterable<TopicSeen>): Promise<MovesView> {
    const problems: LayoutProblem[] = [];
    const onProblem = (problem: LayoutProblem) => problems.push(problem);
    const [asked, electing] = await Promise.all([
      this.#asked(onProblem),
      this.#electing(onProblem),
    ]);
    const rows: MoveRow[] = [];
    for (const { topic, partitions } of topics) {
      for (const one of partitions) {
        const wanted = asked.list.get(`${topic}/${one.partition}`);
        asked.list.delete(`${topic}/${one.partition}`);
        const isMoving = one.adding.length + one.removing.length > 0;
        if (isMoving || wanted !== undefined) rows.push(moveOf(topic, one, wanted));
      }
    }
    // Asked for, and nobody knows the partition: the controller says so when it looks.
    for (const { topic, partition, replicas } of asked.list.values()) {
      rows.push({ ...nowhere, topic, partition, to: replicas });
    }
    return {
      rows: rows.slice(0, movesMax),
      total: rows.length,
      askedAtMs: asked.atMs,
      electing: electing.slice(0, movesMax),
      problems: problems.map(({ path, why }) => ({ path, why })),
    };
  }

  async #asked(onProblem: (problem: LayoutProblem) => void) {
    const path = layout08.reassign.at();
    const node = await this.#client.get(path).catch(orNull);
    const list = (node && layout08.reassign.tryParse(node.data, path, onProblem)) ?? [];
    const byPartition = new Map<string, Reassignment>(
      list.map((one) => [`${one.topic}/${one.partition}`, one]),
    );
    return { list: byPartition, atMs: node === null ? null : Number(node.stat.ctime) };
  }

  async #electing(onProblem: (problem: LayoutProblem) => void) {
    const path = layout08.preferredElection.at();
    const node = await this.#client.get(path).catch(orNull);
    const list = (node && layout08.preferredElection.tryParse(node.data, path, onProblem)) ?? [];
    return list.map(({ topic, partition }) => ({ topic, partition }));
  }

  #kept(): Promise<Read> {
    const nowMs = performance.now();
    if (this.#read === undefined || nowMs - this.#readAtMs > keptMs) {
      this.#readAtMs = nowMs;
      const read = this.#readAll();
      this.#read = read;
      read.catch(() => {
        if (this.#read === read) this.#read = undefined;
      });
    }
    return this.#read;
  }

  async #readAll(): Promise<Read> {
    const problems: LayoutProblem[] = [];
    const onProblem = (problem: LayoutProblem) => {
      if (problems.length < problemsMax) problems.push(problem);
    };
    const entities: { kind: ConfigKind; name: string; path: string }[] = [];
    for (const [kind, folder] of folders) {
      for (const name of await this.#names(folder)) {
        entities.push({ kind, name: shownName(kind, name), path: childOf(folder, name) });
      }
    }
    const users = entities.filter(({ kind }) => kind === 'user').slice(0, entitiesMax);
    await inTurns(users, readAtOnce, async ({ name: user, path }) => {
      const folder = childOf(path, 'clients');
      for (const name of await this.#names(folder)) {
        const both = `${user}, client ${shownName('client', name)}`;
        entities.push({ kind: 'user', name: both, path: childOf(folder, name) });
      }
    });
    const looked = entities.slice(0, entitiesMax);
    const rows = await inTurns(looked, readAtOnce, async ({ kind, name, path }) => {
      const node = await this.#client.get(path).catch(orNull);
      const config = node && layout08.brokerConfig.tryParse(node.data, path, onProblem);
      if (config === null || Object.keys(config).length === 0) return [];
      const values = Object.entries(config).map(([key, value]) => ({
        name: key,
        value: secret.test(key) ? null : value,
      }));
      return [{ kind, name, path, values, changedMs: Number(node!.stat.mtime) }];
    });
    return { rows: rows.flat(), problems, skipped: entities.length - looked.length };
  }

  async #names(path: string): Promise<string[]> {
    return ((await this.#client.children(path).catch(orNull)) ?? []).sort();
  }
}

/** `<default>` is Kafka's own name for all that have none of their own. */
function shownName(kind: ConfigKind, name: string): string {
  if (kind !== 'user' && kind !== 'client') return name;
  try {
    return desanitise(name);
  } catch {
    return name; // somebody else's name, shown as it stands
  }
}

const nowhere = {
  from: null,
  adding: [],
  removing: [],
  inSync: null,
  state: 'asked',
} as const satisfies Partial<MoveRow>;

function moveOf(
  topic: string,
  { partition, replicas, adding, removing, state }: PartitionSeen,
  wanted: Reassignment | undefined,
): MoveRow {
  const isMoving = adding.length + removing.length > 0;
  const to = isMoving ? replicas.filter((id) => !removing.includes(id)) : wanted!.replicas;
  return {
    topic,
    partition,
    from: replicas.filter((id) => !adding.includes(id)),
    to,
    adding: isMoving ? adding : to.filter((id) => !replicas.includes(id)),
    removing: isMoving ? removing : replicas.filter((id) => !to.includes(id)),
    inSync: state === null ? null : to.filter((id) => state.isr.includes(id)).length,
    state: isMoving ? 'moving' : 'asked',
  };
}
