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
import { limits } from './api.ts';
import { filterNames, type NameOrder, sortNames } from './names.ts';
import { aclView, encodingOf, hex, statView, unpacked } from './node-text.ts';
import type { ChildrenView, ExportView, FindView, NodeView } from './views.ts';

/** Lists of names that are kept: those of the nodes that are open. */
const listsMax = 8;
/** A list of many names is not asked for again sooner, however often it changes. */
const youngMs = 1_000;
const manyNames = 10_000;
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
  readonly #nowMs: () => number;

  constructor(client: Client, nowMs: () => number = () => performance.now()) {
    this.#client = client;
    this.#nowMs = nowMs;
  }

  async children(
    path: string,
    page: { offset: number; limit: number; filter: string; sort: NameOrder },
    call: CallOptions,
  ): Promise<ChildrenView> {
    const stat = await this.#stat(path, call);
    const list = await this.#list(path, stat, call);
    const names = await viewOf(list, page.sort, page.filter);
    const shown = names.slice(page.offset, page.offset + page.limit);
    const rows = await Promise.all(
      shown.map(async (name) => {
        const child = childOf(path, name);
        const found = await this.#client.exists(child, call).catch(orNull);
        return { name, path: child, stat: found && statView(found) };
      }),
    );
    const { length: total } = list.names;
    return { path, stat: statView(stat), total, matching: names.length, offset: page.offset, rows };
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

  async find(
    { path, text, in: where, limit }: { path: string; text: string; in: string; limit: number },
    call: CallOptions,
  ): Promise<FindView> {
    const wanted = text.toLowerCase();
    const matches: { path: string; stat: ReturnType<typeof statView> }[] = [];
    let looked = 0;
    let isPartial = false;
    let contents: Promise<void>[] = [];
    const keep = (at: string, stat: ZkStat) => {
      if (matches.length < limit) matches.push({ path: at, stat: statView(stat) });
      else isPartial = true;
    };
    for await (const { path: at, stat } of this.#client.walk(path, call)) {
      looked += 1;
      if (where === 'name' && nameOf(at).toLowerCase().includes(wanted)) keep(at, stat);
      if (where === 'owner' && stat.ephemeralOwner > 0n && hex(stat.ephemeralOwner) === wanted) {
        keep(at, stat);
      }
      if (where === 'data' && stat.dataLength > 0) {
        contents.push(
          this.#client.get(at, call).then(
            ({ data }) => {
              if (data?.toString('utf8').toLowerCase().includes(wanted)) keep(at, stat);
            },
            (error) => void orNull(error),
          ),
        );
        if (contents.length >= 64) {
          await Promise.all(contents);
          contents = [];
        }
      }
      isPartial ||= looked >= limits.findNodesMax;
      if (isPartial) break;
    }
    await Promise.all(contents);
    return { matches, looked, isPartial };
  }

  async export(path: string, call: CallOptions): Promise<ExportView> {
    const nodes: { path: string; data: string | null; acl?: ReturnType<typeof aclView> }[] = [];
    let skippedEphemerals = 0;
    let bytes = 0;
    let isCut = false;
    for await (const { path: at, stat } of this.#client.walk(path, call)) {
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
    const [oldest] = this.#lists.keys();
    if (this.#lists.size > listsMax && oldest !== undefined) this.#lists.delete(oldest);
    try {
      return await list;
    } catch (error) {
      if (this.#lists.get(path) === list) this.#lists.delete(path);
      throw error;
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

function meaningOf(path: string): string | null {
  const found = rowOf(layout08, path);
  return found === null ? null : `Kafka: ${found.name}, written by ${layout08[found.name].writer}`;
}
