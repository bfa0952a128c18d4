/**
 * The Tree page's reads: children page by page, one node whole, search, export.
 *
 * In: a session. Out: views. Nothing loads all of anything but names: 300,000 children are one list of
 * names, sorted once and kept until the node says that it has others, and a page asks for the Stats of
 * its own rows alone. Every walk has a limit, and says when it has met it.
 */

import {
  type CallOptions,
  type Client,
  isZkError,
  type StatView as ZkStat,
} from '../client/index.ts';
import { layout08, rowOf } from '../kafka/index.ts';
import { childOf, nameOf } from '../protocol/index.ts';
import { paced } from '../support/index.ts';
import { limits } from './api.ts';
import { ConsoleError } from './console-error.ts';
import { filterNames, likeNames, type NameOrder, placeIn, sortNames } from './names.ts';
import { aclView, encodingOf, hex, statView, unpacked } from './node-text.ts';
import { readableWalk } from './readable-walk.ts';
import type { ChildrenView, ExportView, FindView, NodeView, PathsView } from './views.ts';

/** Lists of names that are kept: those of the nodes that are open. */
const listsMax = 8;
/** Names in all of them: about 50 MB. The one that was asked for last is kept in any case. */
const namesMax = 1_000_000;
/** A list of many names is not asked for again sooner, however often it changes. */
const youngMs = 1_000;
const manyNames = 10_000;
/** How many nodes of a level are gone into for a path that is typed by its letters. */
const branchesMax = 6;
const exportNodesMax = 10_000;
const exportBytesMax = 16 * 1024 * 1024;

interface List {
  readonly key: string;
  readonly atMs: number;
  readonly names: readonly string[];
  readonly views: Map<string, Promise<string[]>>;
}

export class TreeReader {
  readonly #client: Client;
  readonly #lists = new Map<string, Promise<List>>();
  /** How many names each list that has arrived holds, the oldest first. */
  readonly #sizes = new Map<string, number>();
  readonly #nowMs: () => number;

  constructor(client: Client, nowMs: () => number = () => performance.now()) {
    this.#client = client;
    this.#nowMs = nowMs;
  }

  /** Another server may count its changes as the one before did, and hold other nodes. */
  forget(): void {
    this.#lists.clear();
    this.#sizes.clear();
  }

  async children(
    path: string,
    page: {
      offset: number;
      limit: number;
      filter: string;
      sort: NameOrder;
      around?: string | undefined;
    },
    call: CallOptions,
  ): Promise<ChildrenView> {
    const stat = await this.#stat(path, call);
    const list = await this.#list(path, stat, call);
    const names = await viewOf(list, page.sort, page.filter);
    const place = page.around === undefined ? null : placeIn(names, page.around, page.sort);
    // The page that a name stands on, as whoever counts pages from the first would ask for it.
    const offset = place === null ? page.offset : place - (place % Math.max(1, page.limit));
    const shown = names.slice(offset, offset + page.limit);
    const rows = await Promise.all(
      shown.map(async (name) => {
        const child = childOf(path, name);
        const found = await this.#client.exists(child, call).catch(orNull);
        return { name, path: child, stat: found && statView(found) };
      }),
    );
    const { length: total } = list.names;
    return { path, stat: statView(stat), total, matching: names.length, offset, rows };
  }

  async node(path: string, call: CallOptions): Promise<NodeView> {
    const [{ data, stat }, acl] = await Promise.all([
      this.#client.get(path, call),
      this.#client.getAcl(path, call).catch(orNull),
    ]);
    return {
      path,
      stat: statView(stat),
      data: data === null ? null : data.toString('base64'),
      encoding: encodingOf(data),
      unpacked: await unpacked(data),
      acl: acl && aclView(acl.acl),
      meaning: meaningOf(path),
    };
  }

  /**
   * Paths like a text, name by name: at each level the few that fit best are gone into. What is typed
   * exactly is gone into in any case, so that nobody is led astray by a better likeness.
   */
  async paths(
    { text, limit }: { text: string; limit: number },
    call: CallOptions,
  ): Promise<PathsView> {
    const wanted = text.replace(/^\//, '').split('/');
    let found: { path: string; points: number }[] = [{ path: '/', points: 0 }];
    for (const [level, name] of wanted.entries()) {
      const isLast = level === wanted.length - 1;
      const most = isLast ? limit : branchesMax;
      const next = await Promise.all(
        found.map(async ({ path, points }) => {
          const names = await this.#names(path, call);
          const like = await likeNames(names, name, most);
          return like.map((one) => ({
            path: childOf(path, one.name),
            points: points + one.points,
          }));
        }),
      );
      found = next
        .flat()
        .sort((a, b) => b.points - a.points)
        .slice(0, most);
    }
    return { paths: found.map(({ path }) => path) };
  }

  /** In order; of a node that is not there, or not ours to see, none. */
  async #names(path: string, call: CallOptions): Promise<readonly string[]> {
    const stat = await this.#client.exists(path, call).catch(orNull);
    if (stat === null || stat.numChildren === 0) return [];
    const list = await this.#list(path, stat, call).catch(orNull);
    return list === null ? [] : viewOf(list, 'name', '');
  }

  async find(
    { path, text, in: where, limit }: { path: string; text: string; in: string; limit: number },
    call: CallOptions,
  ): Promise<FindView> {
    const wanted = text.toLowerCase();
    const isOfAge = where === 'age' ? ageOf(text) : null;
    const matches: { path: string; stat: ReturnType<typeof statView> }[] = [];
    let looked = 0;
    let isPartial = false;
    let hasClosed = false;
    const onClosed = () => {
      hasClosed = true;
    };
    let contents: Promise<void>[] = [];
    const keep = (at: string, stat: ZkStat) => {
      if (matches.length < limit) matches.push({ path: at, stat: statView(stat) });
      else isPartial = true;
    };
    for await (const { path: at, stat } of paced(
      readableWalk(this.#client, path, call, onClosed),
    )) {
      looked += 1;
      if (where === 'name' && nameOf(at).toLowerCase().includes(wanted)) keep(at, stat);
      if (isOfAge?.(Date.now() - Number(stat.mtime))) keep(at, stat);
      if (where === 'owner' && stat.ephemeralOwner > 0n && hex(stat.ephemeralOwner) === wanted) {
        keep(at, stat);
      }
      if (where === 'data' && stat.dataLength > 0) {
        const content = this.#client.get(at, call).then(
          ({ data }) => {
            if (data?.toString('utf8').toLowerCase().includes(wanted)) keep(at, stat);
          },
          (error) => void orNull(error),
        );
        // Waited for below. Where the walk fails first, as when nobody waits any more, that is the error.
        content.catch(() => {});
        contents.push(content);
        if (contents.length >= 64) {
          await Promise.all(contents);
          contents = [];
        }
      }
      isPartial ||= looked >= limits.findNodesMax;
      if (isPartial) break;
    }
    await Promise.all(contents);
    return { matches, looked, isPartial: isPartial || hasClosed };
  }

  async export(path: string, call: CallOptions): Promise<ExportView> {
    const nodes: { path: string; data: string | null; acl?: ReturnType<typeof aclView> }[] = [];
    let skippedEphemerals = 0;
    let bytes = 0;
    let isCut = false;
    for await (const { path: at, stat } of paced(this.#client.walk(path, call))) {
      if (stat.ephemeralOwner > 0n) {
        skippedEphemerals += 1;
        continue;
      }
      isCut = nodes.length >= exportNodesMax || bytes + stat.dataLength > exportBytesMax;
      if (isCut) break;
      const found = await this.#client.get(at, call).catch(orNull);
      if (found === null) continue;
      bytes += found.data?.length ?? 0;
      const below = path === '/' ? at.slice(at === '/' ? 1 : 0) : at.slice(path.length);
      nodes.push({ path: below, data: found.data === null ? null : found.data.toString('base64') });
    }
    return { path, nodes, isCut, skippedEphemerals };
  }

  async #stat(path: string, call: CallOptions): Promise<ZkStat> {
    const stat = await this.#client.exists(path, call);
    if (stat !== null) return stat;
    return (await this.#client.get(path, call)).stat; // says NO_NODE as the server does
  }

  async #list(path: string, stat: ZkStat, call: CallOptions): Promise<List> {
    const key = `${stat.czxid} ${stat.pzxid} ${stat.cversion}`;
    const before = await this.#lists.get(path)?.catch(() => undefined);
    if (before !== undefined) {
      const isYoung = this.#nowMs() - before.atMs < youngMs && before.names.length >= manyNames;
      if (before.key === key || isYoung) return before;
    }
    const list = this.#client.childrenAndStat(path, call).then(({ children, stat: now }) => ({
      key: `${now.czxid} ${now.pzxid} ${now.cversion}`,
      atMs: this.#nowMs(),
      names: children,
      views: new Map(),
    }));
    this.#lists.delete(path); // so that it is the youngest
    this.#lists.set(path, list);
    this.#sizes.delete(path);
    try {
      const read = await list;
      if (this.#lists.get(path) === list) this.#keep(path, read.names.length);
      return read;
    } catch (error) {
      if (this.#lists.get(path) === list) this.#lists.delete(path);
      throw error;
    }
  }

  /** Lets go of the oldest until what is left is little enough. */
  #keep(path: string, names: number): void {
    this.#sizes.set(path, names);
    let all = [...this.#sizes.values()].reduce((sum, size) => sum + size, 0);
    for (const [oldest, size] of this.#sizes) {
      if (oldest === path || (this.#sizes.size <= listsMax && all <= namesMax)) break;
      this.#sizes.delete(oldest);
      this.#lists.delete(oldest);
      all -= size;
    }
  }
}

/** Orders and filters of one list that are kept. */
const viewsMax = 4;

async function viewOf(list: List, sort: NameOrder, filter: string): Promise<string[]> {
  const key = `${sort} ${filter}`;
  const known = list.views.get(key);
  if (known !== undefined) return known;
  const view =
    filter === ''
      ? sortNames(list.names, sort)
      : viewOf(list, sort, '').then((names) => filterNames(names, filter));
  list.views.set(key, view);
  const [oldest] = [...list.views.keys()].filter((name) => name !== `${sort} `);
  if (list.views.size > viewsMax && oldest !== undefined) list.views.delete(oldest);
  return view;
}

/** It went while we looked, or is not ours to see. */
export function orNull(error: unknown): null {
  if (isZkError(error, 'NO_NODE', 'NO_AUTH')) return null;
  throw error;
}

// biome-ignore format: a table is read down its columns
const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `<2h` changed less than two hours ago, `>30d` more than thirty days ago; without a sign it is less. */
export function ageOf(text: string): (ageMs: number) => boolean {
  const match = /^\s*([<>]?)\s*(\d{1,9}(?:\.\d{1,3})?)\s*([smhd])\s*$/i.exec(text);
  if (match === null) {
    throw new ConsoleError(
      'BAD_INPUT',
      'an age is wanted: <2h is newer than two hours, >30d older',
    );
  }
  const limitMs = Number(match[2]) * unitMs[match[3]!.toLowerCase()]!;
  return match[1] === '>' ? (ageMs) => ageMs > limitMs : (ageMs) => ageMs < limitMs;
}

function meaningOf(path: string): string | null {
  const found = rowOf(layout08, path);
  return found === null ? null : `Kafka: ${found.name}, written by ${layout08[found.name].writer}`;
}
