import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { StatView } from '../protocol/index.ts';
import { KnownNodes, type MissedType } from './known-nodes.ts';

interface Node {
  czxid: bigint;
  mzxid: bigint;
  pzxid: bigint;
  version: number;
  cversion: number;
}

interface Told {
  readonly type: MissedType;
  readonly path: string;
  readonly zxid: bigint | null;
}

type Frame =
  | { readonly event: Told }
  | {
      readonly reply: string;
      readonly stat: Node | null;
      readonly children: string[];
      zxid: bigint;
    }
  | { readonly pong: bigint };

const parent = (path: string) => path.slice(0, path.lastIndexOf('/'));

/** A server and a link to it, step by step: what is on its way when the link is cut is lost. */
class World {
  readonly tree = new Map<string, Node>();
  readonly recursive: boolean;
  /** 3.9 says which transaction an event is of, 3.8 does not. */
  readonly saysZxid: boolean;
  zxid = 0n;
  isLinked = false;
  isWatched = false;
  toServer: string[] = [];
  toClient: Frame[] = [];

  constructor(recursive: boolean, saysZxid: boolean) {
    this.recursive = recursive;
    this.saysZxid = saysZxid;
    this.create('/w');
  }

  create(path: string): void {
    const above = this.tree.get(parent(path));
    if (this.tree.has(path) || (path !== '/w' && above === undefined)) return;
    const zxid = ++this.zxid;
    this.tree.set(path, { czxid: zxid, mzxid: zxid, pzxid: zxid, version: 0, cversion: 0 });
    this.#tell('created', path);
    this.#childChanged(above, parent(path));
  }

  set(path: string): void {
    const node = this.tree.get(path);
    if (node === undefined) return;
    node.mzxid = ++this.zxid;
    node.version += 1;
    this.#tell('dataChanged', path);
  }

  delete(path: string): void {
    for (const below of this.tree.keys()) if (parent(below) === path) this.delete(below);
    if (!this.tree.delete(path)) return;
    this.zxid += 1n;
    this.#tell('deleted', path);
    this.#childChanged(this.tree.get(parent(path)), parent(path));
  }

  #childChanged(node: Node | undefined, path: string): void {
    if (node === undefined) return;
    node.cversion += 1;
    node.pzxid = this.zxid;
    this.#tell('childrenChanged', path);
  }

  #tell(type: MissedType, path: string): void {
    const isFor = this.recursive ? type !== 'childrenChanged' : path === '/w';
    if (!this.isWatched || !isFor) return;
    this.toClient.push({ event: { type, path, zxid: this.saysZxid ? this.zxid : null } });
  }

  cut(): void {
    this.isLinked = false;
    this.isWatched = false;
    this.toServer = [];
    this.toClient = [];
  }

  serve(): void {
    const asked = this.toServer.shift();
    if (asked === undefined) return;
    if (asked === 'watch') this.isWatched = true;
    else if (asked === 'ping') this.toClient.push({ pong: this.zxid });
    else {
      const stat = this.tree.get(asked);
      const children = [...this.tree.keys()].filter((path) => parent(path) === asked);
      this.toClient.push({
        reply: asked,
        stat: stat === undefined ? null : { ...stat },
        children,
        zxid: this.zxid,
      });
    }
  }
}

/** Drives KnownNodes as a watch stream does, and reads each node again whenever it is told of it. */
class Watcher {
  readonly world: World;
  readonly known: KnownNodes;
  readonly told: Told[] = [];
  /** What the reader thinks there is, from the end of the first look on. */
  cache: Map<string, Node> | undefined;
  #seenZxid = 0n;
  #asked = 0;
  #held: Told[] | undefined;
  /** What the first look and the events beside it add up to. */
  readonly #first = new Set<string>();

  constructor(world: World) {
    this.world = world;
    this.known = new KnownNodes(world.recursive);
  }

  link(): void {
    if (this.world.isLinked) return;
    this.world.isLinked = true;
    this.known.beginLook(this.#seenZxid);
    if (this.known.hasLooked) this.#held = [];
    this.#asked = 1;
    this.#first.clear();
    this.world.toServer = ['watch', '/w'];
  }

  ping(): void {
    if (this.world.isLinked) this.world.toServer.push('ping');
  }

  deliver(): void {
    const frame = this.world.toClient.shift();
    if (frame === undefined) return;
    if ('event' in frame) this.#heard(frame.event);
    else if ('pong' in frame) this.#seenZxid = frame.pong;
    else this.#replied(frame);
  }

  get isDone(): boolean {
    const { toServer, toClient } = this.world;
    return this.#asked === 0 && toServer.length === 0 && toClient.length === 0;
  }

  #heard(event: Told): void {
    this.known.happened(event.type, event.path, event.zxid);
    if (event.type === 'created') this.#first.add(event.path);
    if (event.type === 'deleted') this.#first.delete(event.path);
    if (this.#held !== undefined) this.#held.push(event);
    else this.#push(...this.known.takeMissed(), event);
  }

  #replied({ reply, stat, children, zxid }: Extract<Frame, { reply: string }>): void {
    this.#seenZxid = zxid;
    this.#asked -= 1;
    if (stat === null) this.known.missing(reply);
    else {
      this.#first.add(reply);
      this.known.seen(reply, stat as unknown as StatView);
      if (this.world.recursive) {
        this.world.toServer.push(...children);
        this.#asked += children.length;
      }
    }
    if (this.#asked > 0) return;
    this.known.endLook();
    const held = this.#held ?? [];
    this.#held = undefined;
    this.#push(...this.known.takeMissed(), ...held);
    this.cache ??= this.#readAll();
  }

  #push(...changes: Told[]): void {
    for (const { type, path, zxid } of changes) {
      if (this.cache === undefined) continue;
      this.told.push({ type, path, zxid });
      if (type === 'created') expect(this.cache.has(path), `${path} is new`).toBe(false);
      else expect(this.cache.has(path), `${path} is known`).toBe(true);
      if (type === 'created' && path !== '/w') {
        expect(this.cache.has(parent(path)), `${path} has a parent`).toBe(true);
      }
      if (type === 'deleted') {
        const below = [...this.cache.keys()].filter((one) => parent(one) === path);
        expect(below, `${path} is empty`).toEqual([]);
        this.cache.delete(path);
      } else {
        // It may be gone by now; then its deletion is still to be told.
        const now = this.world.tree.get(path);
        this.cache.set(path, now ? { ...now } : { ...blank });
      }
    }
  }

  #readAll(): Map<string, Node> {
    // As of what was looked at, which the events that are on their way will move on.
    const all = new Map<string, Node>();
    for (const path of this.#first) {
      all.set(path, { ...(this.world.tree.get(path) ?? blank) });
    }
    return all;
  }
}

const blank: Node = { czxid: -1n, mzxid: -1n, pzxid: -1n, version: -1, cversion: -1 };

const path = fc.constantFrom('/w', '/w/a', '/w/b', '/w/a/x', '/w/a/y', '/w/b/x', '/w/a/x/1');
const step = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(fc.constantFrom('create', 'set', 'delete'), path) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('again' as const), path) },
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom('cut', 'ping'), fc.constant('')) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('link' as const), fc.constant('')) },
  { weight: 6, arbitrary: fc.tuple(fc.constantFrom('serve', 'deliver'), fc.constant('')) },
);

test.each([
  ['recursive', true, true],
  ['recursive, from servers that say no zxid', true, false],
  ['of one node', false, true],
  ['of one node, from servers that say no zxid', false, false],
] as const)(
  'a watch %s, through whatever gaps, tells all that leads to the present, in order and once',
  (_, recursive, saysZxid) => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120, size: 'max' }), (steps) => {
        const world = new World(recursive, saysZxid);
        const watcher = new Watcher(world);
        for (const [what, at] of steps) {
          if (what === 'create' || what === 'set' || what === 'delete') world[what](at);
          else if (what === 'again') {
            world.delete(at);
            world.create(at);
          } else if (what === 'cut' || what === 'serve') world[what]();
          else watcher[what]();
        }
        watcher.link();
        while (!watcher.isDone) {
          world.serve();
          watcher.deliver();
        }

        const isWatched = (one: string) => recursive || one === '/w';
        const present = [...world.tree].filter(([one]) => isWatched(one));
        const shown = (nodes: Iterable<[string, Node]>) =>
          [...nodes]
            .map(([one, { czxid, version, cversion }]) =>
              recursive ? { one, czxid, version } : { one, czxid, version, cversion },
            )
            .sort((a, b) => (a.one < b.one ? -1 : 1));
        expect(shown(watcher.cache!)).toEqual(shown(present));
        const zxids = watcher.told.flatMap(({ zxid }) => (zxid === null ? [] : [zxid]));
        expect(zxids).toEqual([...zxids].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
        expect(watcher.known.size).toBe(present.length);
      }),
      { numRuns: 500 },
    );
  },
);
