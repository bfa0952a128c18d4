/**
 * The Recipes page: locks, elections, semaphores, queues, barriers, discovery and groups of members, found
 * by how their nodes are named (Curator's names, which are ours too), with who holds and who waits.
 *
 * In: a subtree. Out: recipes, up to limits that are said when met. It is a guess by names: a program that
 * names its nodes alike is shown as one. While a watch tells of changes, only what changed is asked for
 * again. Sessions that wait for each other in a circle are a deadlock.
 */

import {
  type CallOptions,
  type Client,
  isZkError,
  type StatView as ZkStat,
} from '../client/index.ts';
import { childOf, nameOf, parentOf } from '../protocol/index.ts';
import { parseInstance } from '../recipes/index.ts';
import { limits } from './api.ts';
import { hex } from './node-text.ts';
import type { ChangeView, ContenderView, RecipeKind, RecipesView, RecipeView } from './views.ts';

const recipesMax = 500;
const contendersShown = 50;
const labelChars = 120;
const visitAtOnce = 64;
const readAtOnce = 50;
/** Longer lists are asked for each time: they would be kept for a few that change all the time. */
const knownChildrenMax = 1_000;
/** Subtrees whose nodes are named for other reasons. */
const left =
  /^\/(zookeeper|brokers|config|admin|isr_change_notification|log_dir_event_notification)(\/|$)/;

const protectedPrefix = '(?:_c_[0-9a-f-]{36}-)?';
const patterns = {
  lock: new RegExp(`^${protectedPrefix}lock-\\d{10}$`),
  readWrite: new RegExp(`^${protectedPrefix}__(READ|WRIT)__\\d{10}$`),
  latch: new RegExp(`^${protectedPrefix}latch-\\d{10}$`),
  lease: new RegExp(`^${protectedPrefix}lease-\\d{10}$`),
  queue: /^(queue-|qn-)/,
} as const;

interface Visited {
  readonly path: string;
  readonly names: readonly string[];
  readonly stat: ZkStat;
}

export class Recipes {
  readonly #client: Client;
  readonly #isLive: () => boolean;
  /** Children as they were, for as long as a watch tells when they change. */
  readonly #known = new Map<string, Visited>();
  readonly #reading = new Map<string, { isStale: boolean }>();

  constructor(client: Client, isLive: () => boolean = () => false) {
    this.#client = client;
    this.#isLive = isLive;
  }

  /** What the live tree tells: so that a look after a change asks for what changed, and not for all. */
  changed(path: string, type: ChangeView['type']): void {
    if (type === 'dataChanged') return;
    const parent = parentOf(path);
    this.#drop(path);
    if (parent !== null) this.#drop(parent);
  }

  /** Changes may have gone by unseen. */
  forget(): void {
    this.#known.clear();
    for (const reading of this.#reading.values()) reading.isStale = true;
  }

  #drop(path: string): void {
    this.#known.delete(path);
    const reading = this.#reading.get(path);
    if (reading !== undefined) reading.isStale = true;
  }

  async view(root: string, call: CallOptions): Promise<RecipesView> {
    const { visited, looked, isPartial } = await this.#visit(root, call);
    const byPath = new Map(visited.map((one) => [one.path, one]));
    const recipes: RecipeView[] = [];
    let isCut = isPartial;
    for (const one of visited) {
      const kind = kindOf(one, byPath);
      if (kind === null) continue;
      if (recipes.length === recipesMax) {
        isCut = true;
        break;
      }
      const recipe = await this.#recipe(kind, one, byPath, call);
      if (recipe !== null) recipes.push(recipe);
    }
    return { recipes, looked, isPartial: isCut, deadlocks: deadlocksIn(recipes) };
  }

  async #visit(root: string, call: CallOptions) {
    const visited: Visited[] = [];
    let level = [root];
    let looked = 0;
    while (level.length > 0 && looked < limits.recipeNodesMax) {
      const below: string[] = [];
      for (let at = 0; at < level.length && looked < limits.recipeNodesMax; at += visitAtOnce) {
        const paths = level.slice(at, at + visitAtOnce);
        const seen = await Promise.all(paths.map((path) => this.#children(path, call)));
        looked += paths.length;
        for (const one of seen) {
          if (one === null) continue;
          visited.push(one);
          // Places in a line have nothing below them, and there may be very many.
          const inner = one.names.filter((name) => !isPlace(name));
          for (const name of inner) {
            const path = childOf(one.path, name);
            if (!left.test(path)) below.push(path);
          }
        }
      }
      level = below;
    }
    return { visited, looked, isPartial: level.length > 0 };
  }

  async #children(path: string, call: CallOptions): Promise<Visited | null> {
    const known = this.#isLive() ? this.#known.get(path) : undefined;
    if (known !== undefined) return known;
    // An event may come between the answer and us: what it makes stale is not kept.
    const reading = { isStale: false };
    this.#reading.set(path, reading);
    try {
      const { children, stat } = await this.#client.childrenAndStat(path, call);
      const seen = { path, names: children, stat };
      const isKept =
        this.#isLive() &&
        !reading.isStale &&
        this.#reading.get(path) === reading &&
        children.length <= knownChildrenMax &&
        this.#known.size < limits.recipeNodesMax;
      if (isKept) this.#known.set(path, seen);
      return seen;
    } catch (error) {
      if (isZkError(error, 'NO_NODE', 'NO_AUTH')) return null;
      throw error;
    } finally {
      if (this.#reading.get(path) === reading) this.#reading.delete(path);
    }
  }

  async #recipe(
    kind: RecipeKind,
    { path, names }: Visited,
    byPath: ReadonlyMap<string, Visited>,
    call: CallOptions,
  ): Promise<RecipeView | null> {
    const common = { kind, path, oldestWaitMs: null, size: null, note: null };
    if (kind === 'semaphore') {
      const leases =
        byPath.get(childOf(path, 'leases'))?.names.filter((n) => patterns.lease.test(n)) ?? [];
      const waits =
        byPath.get(childOf(path, 'locks'))?.names.filter((n) => patterns.lock.test(n)) ?? [];
      const holders = await this.#places(childOf(path, 'leases'), leases, () => 'holds', call);
      const waiters = await this.#places(childOf(path, 'locks'), waits, () => 'waits', call);
      return finished({
        ...common,
        contenders: [...holders, ...waiters].slice(0, contendersShown),
        holding: leases.length,
        waiting: waits.length,
        size: leases.length,
      });
    }
    if (kind === 'queue') {
      const items = names.filter((name) => patterns.queue.test(name)).length;
      return { ...common, contenders: [], holding: 0, waiting: items, size: items };
    }
    if (kind === 'barrier') {
      const note = 'by its name: whoever waits watches it';
      return { ...common, contenders: [], holding: 1, waiting: 0, note };
    }
    if (kind === 'discovery' || kind === 'membership') {
      const contenders = await this.#places(path, names, () => 'stands', call);
      return { ...common, contenders, holding: names.length, waiting: 0, size: names.length };
    }
    if (kind === 'doubleBarrier') {
      const members = names.filter((name) => name !== 'ready');
      const isReady = names.includes('ready');
      const contenders = await this.#places(
        path,
        members,
        () => (isReady ? 'holds' : 'waits'),
        call,
      );
      const note = isReady ? 'entered' : 'not everybody is there';
      const [holding, waiting] = isReady ? [members.length, 0] : [0, members.length];
      return finished({ ...common, contenders, holding, waiting, size: members.length, note });
    }
    const line = names.filter(isPlace).sort(bySequence);
    const holding = kind === 'readWriteLock' ? readersOrWriter(line) : Math.min(1, line.length);
    const first = new Set(line.slice(0, holding));
    const stateOf = (name: string) =>
      (first.has(name) ? 'holds' : 'waits') as ContenderView['state'];
    const contenders = await this.#places(path, line, stateOf, call);
    return finished({ ...common, contenders, holding, waiting: line.length - holding });
  }

  /** The first of them, with who owns them. Those that leave meanwhile are left out. */
  async #places(
    path: string,
    names: readonly string[],
    stateOf: (name: string) => ContenderView['state'],
    call: CallOptions,
  ): Promise<ContenderView[]> {
    const shown = [...names].sort(bySequence).slice(0, contendersShown);
    const found: ContenderView[] = [];
    for (let at = 0; at < shown.length; at += readAtOnce) {
      const some = shown.slice(at, at + readAtOnce);
      const nodes = await Promise.all(
        some.map((name) => this.#client.get(childOf(path, name), call).catch(gone)),
      );
      for (const [i, node] of nodes.entries()) {
        if (node === null) continue;
        const name = some[i]!;
        const { ephemeralOwner, ctime, czxid } = node.stat;
        found.push({
          path: childOf(path, name),
          name,
          session: ephemeralOwner > 0n ? hex(ephemeralOwner) : null,
          label: labelOf(node.data),
          ageMs: Math.max(0, Date.now() - Number(ctime)),
          fencingToken: String(czxid),
          side: name.includes('__READ__') ? 'read' : name.includes('__WRIT__') ? 'write' : null,
          state: stateOf(name),
        });
      }
    }
    return found;
  }
}

function gone(error: unknown): null {
  if (isZkError(error, 'NO_NODE', 'NO_AUTH')) return null;
  throw error;
}

/** An instance says its address; others what they wrote; all of it is only ever shown as text. */
function labelOf(data: Buffer | null): string {
  if (data === null || data.length === 0) return '';
  if (data[0] === 0x7b) {
    try {
      const { name, address, port } = parseInstance(data);
      if (name !== '' && address !== null)
        return `${name} ${address}:${port ?? ''}`.slice(0, labelChars);
    } catch {
      // no instance: shown as it is
    }
  }
  return data
    .subarray(0, 4 * labelChars)
    .toString('utf8')
    .slice(0, labelChars);
}

function isPlace(name: string): boolean {
  const { lock, readWrite, latch, lease, queue } = patterns;
  return [lock, readWrite, latch, lease, queue].some((pattern) => pattern.test(name));
}

function kindOf(
  { path, names, stat }: Visited,
  byPath: ReadonlyMap<string, Visited>,
): RecipeKind | null {
  const has = (pattern: RegExp) => names.some((name) => pattern.test(name));
  if (isSemaphore(path, names, byPath)) return 'semaphore';
  if (has(patterns.readWrite)) return 'readWriteLock';
  if (has(patterns.latch)) return 'election';
  // The line of a semaphore is shown with it.
  if (has(patterns.lock)) {
    const above = parentOf(path);
    const parent = above === null ? undefined : byPath.get(above);
    const isOfSemaphore =
      nameOf(path) === 'locks' && parent && isSemaphore(parent.path, parent.names, byPath);
    return isOfSemaphore ? null : 'lock';
  }
  if (has(patterns.lease)) return null;
  if (has(patterns.queue)) return 'queue';
  if (names.includes('ready')) return 'doubleBarrier';
  if (names.length === 0) {
    return /barrier/i.test(nameOf(path)) && stat.ephemeralOwner === 0n ? 'barrier' : null;
  }
  const below = names.map((name) => byPath.get(childOf(path, name)));
  const areEphemeral = below.every((one) => one !== undefined && one.stat.ephemeralOwner > 0n);
  if (!areEphemeral) return null;
  const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
  return names.every((name) => uuid.test(name)) ? 'discovery' : 'membership';
}

/** Leases, and a line for them; before the first lease only the line. A folder called locks is no line. */
function isSemaphore(
  path: string,
  names: readonly string[],
  byPath: ReadonlyMap<string, Visited>,
): boolean {
  if (names.includes('leases')) return byPath.has(childOf(path, 'leases'));
  const line = names.length === 1 && names[0] === 'locks' && byPath.get(childOf(path, 'locks'));
  return line ? line.names.some((name) => patterns.lock.test(name)) : false;
}

function bySequence(a: string, b: string): number {
  return a.slice(-10) < b.slice(-10) ? -1 : 1;
}

/** All readers before the first writer hold it, or the writer that is first. */
function readersOrWriter(line: readonly string[]): number {
  const firstWriter = line.findIndex((name) => name.includes('__WRIT__'));
  return firstWriter === -1 ? line.length : Math.max(1, firstWriter);
}

function finished(recipe: RecipeView): RecipeView {
  const waits = recipe.contenders.filter(({ state }) => state === 'waits');
  const ages = waits.map(({ ageMs }) => ageMs);
  return { ...recipe, oldestWaitMs: ages.length === 0 ? null : Math.max(...ages) };
}

type Deadlock = RecipesView['deadlocks'][number];

/** Circles of sessions, each of which holds what the one before it waits for. */
export function deadlocksIn(recipes: readonly RecipeView[]): Deadlock[] {
  const waitsFor = new Map<string, { path: string; holders: string[] }[]>();
  for (const { path, contenders, kind } of recipes) {
    if (kind !== 'lock' && kind !== 'readWriteLock') continue;
    const sessionsOf = (state: ContenderView['state']) =>
      contenders.filter((one) => one.state === state).flatMap(({ session }) => session ?? []);
    const holders = [...new Set(sessionsOf('holds'))];
    for (const session of sessionsOf('waits')) {
      waitsFor.set(session, [...(waitsFor.get(session) ?? []), { path, holders }]);
    }
  }
  const found: Deadlock[] = [];
  const told = new Set<string>();
  for (const start of waitsFor.keys()) {
    const circle = circleFrom(start, waitsFor);
    if (circle === null) continue;
    const key = circle
      .map(({ session }) => session)
      .sort()
      .join(' ');
    if (told.has(key)) continue;
    told.add(key);
    found.push(
      circle.map(({ session, waits }, i) => {
        const wanted = circle[(i + circle.length - 1) % circle.length]!.waits;
        return { session, holds: wanted, waitsFor: waits };
      }),
    );
  }
  return found;
}

/** The way from a session along what it waits for, if it leads back to it. */
function circleFrom(
  start: string,
  waitsFor: ReadonlyMap<string, readonly { path: string; holders: readonly string[] }[]>,
): { session: string; waits: string }[] | null {
  const seen = new Set<string>();
  const stack: { session: string; way: { session: string; waits: string }[] }[] = [
    { session: start, way: [] },
  ];
  for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
    for (const { path, holders } of waitsFor.get(at.session) ?? []) {
      for (const holder of holders) {
        const way = [...at.way, { session: at.session, waits: path }];
        if (holder === start) {
          if (way.length > 1) return way;
          continue; // who waits for itself has asked twice, and is not in a circle with others
        }
        if (seen.has(holder)) continue;
        seen.add(holder);
        stack.push({ session: holder, way });
      }
    }
  }
  return null;
}
