/**
 * The Recipes page: locks, elections, semaphores, queues, barriers, discovery and groups of members, found
 * by how their nodes are named (Curator's names, which are ours too), with who holds and who waits.
 *
 * In: a subtree. Out: recipes, up to limits that are said when met. It is a guess by names: a program that
 * names its nodes alike is shown as one. While a watch tells of changes, only what changed is asked for
 * again. Sessions that wait for each other in a circle are a deadlock.
 */

import { type CallOptions, type Client, isZkError } from '../client/index.ts';
import { childOf, parentOf } from '../protocol/index.ts';
import { parseInstance } from '../recipes/index.ts';
import { Pace } from '../support/index.ts';
import { limits } from './api.ts';
import { deadlocksIn } from './deadlocks.ts';
import type { ElectionTerms } from './election-terms.ts';
import { hex } from './node-text.ts';
import {
  inLine,
  isBuckets,
  kindOf,
  patterns,
  placeOf,
  placesIn,
  type Visited,
} from './recipe-kinds.ts';
import type { ChangeView, ContenderView, RecipeKind, RecipesView, RecipeView } from './views.ts';

const recipesMax = 500;
const contendersShown = 50;
const labelChars = 120;
const termsShown = 5;
const visitAtOnce = 64;
const readAtOnce = 50;
/** Longer lists are asked for each time: they would be kept for a few that change all the time. */
const knownChildrenMax = 1_000;
/** Subtrees whose nodes are named for other reasons. */
const left =
  /^\/(zookeeper|brokers|config|admin|isr_change_notification|log_dir_event_notification|consumers\/[^/]+\/(owners|offsets))(\/|$)/;

export class Recipes {
  readonly #client: Client;
  readonly #isLive: () => boolean;
  readonly #terms: ElectionTerms | undefined;
  /** Children as they were, for as long as a watch tells when they change. */
  readonly #known = new Map<string, Visited>();
  readonly #reading = new Map<string, { isStale: boolean }>();

  constructor(client: Client, isLive: () => boolean = () => false, terms?: ElectionTerms) {
    this.#client = client;
    this.#isLive = isLive;
    this.#terms = terms;
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
    const pace = new Pace();
    const recipes: RecipeView[] = [];
    let isCut = isPartial;
    for (const one of visited) {
      const kind = kindOf(one, byPath);
      await pace.keep();
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
    const pace = new Pace();
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
          for (const [at, name] of one.names.entries()) {
            if ((at & 0xff) === 0) await pace.keep();
            // Places in a line have nothing below them, and there may be very many.
            if (one.places.size > 0 && placeOf(name) !== null) continue;
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
      const seen = { path, names: children, places: await placesIn(children), stat };
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
      const namesAt = (name: string) => byPath.get(childOf(path, name))?.names ?? [];
      const leases = await inLine(namesAt('leases'), (name) => patterns.lease.test(name));
      const waits = await inLine(namesAt('locks'), (name) => patterns.lock.test(name));
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
      return isBuckets(path, names, byPath)
        ? this.#buckets(path, byPath, call)
        : this.#queue(path, names, call);
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
    const line = await inLine(names, (name) => placeOf(name) !== null);
    const holding = kind === 'readWriteLock' ? readersOrWriter(line) : Math.min(1, line.length);
    const first = new Set(line.slice(0, holding));
    const stateOf = (name: string) =>
      (first.has(name) ? 'holds' : 'waits') as ContenderView['state'];
    const contenders = await this.#places(path, line, stateOf, call);
    const terms = kind === 'election' ? await this.#terms?.seen(path, termsShown) : undefined;
    return finished({
      ...common,
      contenders,
      holding,
      waiting: line.length - holding,
      ...(terms && { terms }),
    });
  }

  /** Null: they are the claims of a queue's takers, which have its items' names. */
  async #queue(
    path: string,
    names: readonly string[],
    call: CallOptions,
  ): Promise<RecipeView | null> {
    const items = await inLine(names, (name) => patterns.queue.test(name));
    const [first] = await this.#places(path, items.slice(0, 1), () => 'stands', call);
    if (first !== undefined && first.session !== null) return null;
    const counts = { holding: 0, waiting: 0, size: items.length, oldestWaitMs: null, note: null };
    return { kind: 'queue', path, contenders: [], ...counts };
  }

  /** Items that somebody works on have a claim; takers wait for an item, in line. */
  async #buckets(
    path: string,
    byPath: ReadonlyMap<string, Visited>,
    call: CallOptions,
  ): Promise<RecipeView> {
    const under = (...names: string[]) => names.reduce((at, name) => childOf(at, name), path);
    const namesAt = (at: string) => byPath.get(at)?.names ?? [];
    const [holders, claims]: [ContenderView[], string[]] = [[], []];
    let [items, dead] = [0, 0];
    for (const bucket of namesAt(under('items'))) {
      const at = under('items', bucket);
      const claimed = await inLine(namesAt(at), (name) => patterns.claim.test(name));
      items += namesAt(at).length - claimed.length;
      for (const claim of claimed) claims.push(claim);
      const shown = claimed.slice(0, contendersShown - holders.length);
      holders.push(...(await this.#places(at, shown, () => 'holds', call)));
    }
    for (const bucket of namesAt(under('dead'))) dead += namesAt(under('dead', bucket)).length;
    const takers = await inLine(namesAt(under('takers')), (name) => patterns.taker.test(name));
    const waiters = await this.#places(under('takers'), takers, () => 'waits', call);
    return finished({
      kind: 'queue',
      path,
      contenders: [...holders, ...waiters].slice(0, contendersShown),
      holding: claims.length,
      waiting: takers.length,
      size: items,
      oldestWaitMs: null,
      note: dead === 0 ? null : `${dead} given up, below dead`,
    });
  }

  /** The first of them, with who owns them. Those that leave meanwhile are left out. */
  async #places(
    path: string,
    names: readonly string[],
    stateOf: (name: string) => ContenderView['state'],
    call: CallOptions,
  ): Promise<ContenderView[]> {
    const shown = (await inLine(names)).slice(0, contendersShown);
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

/** All readers before the first writer hold it, or the writer that is first. */
function readersOrWriter(line: readonly string[]): number {
  const firstWriter = line.findIndex((name) => name.includes('__WRIT__'));
  return firstWriter === -1 ? line.length : Math.max(1, firstWriter);
}

function finished(recipe: RecipeView): RecipeView {
  const waits = recipe.contenders.filter(({ state }) => state === 'waits');
  const oldestWaitMs = waits.reduce<number | null>(
    (oldest, { ageMs }) => Math.max(oldest ?? ageMs, ageMs),
    null,
  );
  return { ...recipe, oldestWaitMs };
}
