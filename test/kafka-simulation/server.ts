/**
 * A model of a ZooKeeper server, small enough to be read at once: nodes, sessions, one-shot watches,
 * multi, expiry. Requests are counted, and whoever wants to can look at every change of a node.
 */

import type { MultiOp } from '../../src/client/index.ts';
import type { ZkErrorCode } from '../../src/protocol/index.ts';
import type { World } from './world.ts';

export interface Stat {
  czxid: bigint;
  mzxid: bigint;
  pzxid: bigint;
  version: number;
  ctime: bigint;
  ephemeralOwner: bigint;
}

export interface Node {
  data: Buffer | null;
  readonly stat: Stat;
  readonly children: Set<string>;
  sequence: number;
}

export interface ServerSession {
  readonly id: bigint;
  readonly timeoutMs: number;
  heardMs: number;
  readonly ephemerals: Set<string>;
  /** Where events go; null while no link has it. */
  tell: ((event: ModelEvent) => void) | null;
}

export interface ModelEvent {
  readonly type: 'created' | 'deleted' | 'dataChanged' | 'childrenChanged';
  readonly path: string;
}

export type WatchKind = 'data' | 'child';

export class ModelError extends Error {
  readonly code: ZkErrorCode;
  readonly index: number | undefined;

  constructor(code: ZkErrorCode, index?: number) {
    super(code);
    this.code = code;
    this.index = index;
  }
}

const parentOf = (path: string) => path.slice(0, path.lastIndexOf('/')) || '/';
const nameOf = (path: string) => path.slice(path.lastIndexOf('/') + 1);

type Undo = () => void;

export class ModelServer {
  readonly #world: World;
  readonly nodes = new Map<string, Node>();
  readonly sessions = new Map<bigint, ServerSession>();
  readonly #watches: Record<WatchKind, Map<string, Set<bigint>>> = {
    data: new Map(),
    child: new Map(),
  };
  readonly counts = new Map<string, number>();
  events = 0;
  zxid = 0n;
  #sessionIds = 0x100n;
  /** Every change, before it counts: throws to say that it must not be. */
  onChange: (path: string, before: Node | undefined, data: string | null, session: bigint) => void =
    () => {};

  constructor(world: World) {
    this.#world = world;
    this.nodes.set('/', this.#node(null, 0n));
  }

  get watchCount(): number {
    let count = 0;
    for (const paths of Object.values(this.#watches))
      for (const set of paths.values()) count += set.size;
    return count;
  }

  get requests(): number {
    let count = 0;
    for (const one of this.counts.values()) count += one;
    return count;
  }

  count(op: string): void {
    this.counts.set(op, (this.counts.get(op) ?? 0) + 1);
  }

  #node(data: Buffer | null, owner: bigint): Node {
    const { zxid } = this;
    const ctime = BigInt(1_700_000_000_000 + this.#world.nowMs);
    const stat = {
      czxid: zxid,
      mzxid: zxid,
      pzxid: zxid,
      version: 0,
      ctime,
      ephemeralOwner: owner,
    };
    return { data, stat, children: new Set(), sequence: 0 };
  }

  // ── sessions ──────────────────────────────────────────────────────────────────────────────────

  open(timeoutMs: number): ServerSession {
    const id = this.#sessionIds++;
    const session: ServerSession = {
      id,
      timeoutMs,
      heardMs: this.#world.nowMs,
      ephemerals: new Set(),
      tell: null,
    };
    this.sessions.set(id, session);
    this.#watchOver(session);
    return session;
  }

  #watchOver(session: ServerSession): void {
    const dueMs = session.heardMs + session.timeoutMs;
    this.#world.at(dueMs, () => {
      if (!this.sessions.has(session.id)) return;
      if (this.#world.nowMs >= session.heardMs + session.timeoutMs) this.end(session.id);
      else this.#watchOver(session);
    });
  }

  end(id: bigint): void {
    const session = this.sessions.get(id);
    if (session === undefined) return;
    this.sessions.delete(id);
    session.tell = null;
    this.zxid += 1n;
    const told: ModelEvent[] = [];
    for (const path of [...session.ephemerals]) this.#remove(path, told);
    this.#forgetWatches(id);
    this.#tell(told);
  }

  #forgetWatches(id: bigint): void {
    for (const paths of Object.values(this.#watches)) {
      for (const [path, set] of paths) if (set.delete(id) && set.size === 0) paths.delete(path);
    }
  }

  /** A link is lost: a server's watches go with it, and the client sets them again on the next. */
  unlink(id: bigint): void {
    const session = this.sessions.get(id);
    if (session !== undefined) session.tell = null;
    this.#forgetWatches(id);
  }

  watch(kind: WatchKind, path: string, session: bigint): void {
    const set = this.#watches[kind].get(path) ?? new Set();
    this.#watches[kind].set(path, set);
    set.add(session);
  }

  unwatch(path: string, session: bigint): void {
    for (const paths of Object.values(this.#watches)) {
      const set = paths.get(path);
      if (set?.delete(session) && set.size === 0) paths.delete(path);
    }
  }

  #tell(events: readonly ModelEvent[]): void {
    for (const event of events) {
      const kinds: WatchKind[] =
        event.type === 'childrenChanged'
          ? ['child']
          : event.type === 'deleted'
            ? ['data', 'child']
            : ['data'];
      const heard = new Set<bigint>();
      for (const kind of kinds) {
        for (const id of this.#watches[kind].get(event.path) ?? []) heard.add(id);
        this.#watches[kind].delete(event.path);
      }
      for (const id of heard) {
        this.events += 1;
        this.sessions.get(id)?.tell?.(event);
      }
    }
  }

  // ── writes ────────────────────────────────────────────────────────────────────────────────────

  /** All or none, as one transaction. */
  apply(ops: readonly MultiOp[], session: bigint): { path: string; stat: Stat | null }[] {
    this.zxid += 1n;
    const undo: Undo[] = [];
    const told: ModelEvent[] = [];
    const results = ops.map((op, index) => {
      try {
        return this.#applyOne(op, session, undo, told);
      } catch (error) {
        for (const one of undo.reverse()) one();
        if (error instanceof ModelError) throw new ModelError(error.code, index);
        throw error;
      }
    });
    this.#tell(told);
    return results;
  }

  #applyOne(op: MultiOp, session: bigint, undo: Undo[], told: ModelEvent[]) {
    const node = this.nodes.get(op.path);
    if (op.op === 'create') return this.#create(op, session, undo, told);
    if (node === undefined) throw new ModelError('NO_NODE');
    const { version = -1 } = op;
    if (version !== -1 && version !== node.stat.version) throw new ModelError('BAD_VERSION');
    if (op.op === 'delete') {
      if (node.children.size > 0) throw new ModelError('NOT_EMPTY');
      this.onChange(op.path, node, null, session);
      this.#remove(op.path, told);
      undo.push(() => this.#restore(op.path, node));
    } else if (op.op === 'set') {
      const data = Buffer.from(String(op.data));
      this.onChange(op.path, node, data.toString(), session);
      const { data: oldData, stat } = node;
      const { version: oldVersion, mzxid } = stat;
      node.data = data;
      stat.version += 1;
      stat.mzxid = this.zxid;
      undo.push(() => {
        node.data = oldData;
        stat.version = oldVersion;
        stat.mzxid = mzxid;
      });
      told.push({ type: 'dataChanged', path: op.path });
    }
    return { path: op.path, stat: { ...node.stat } };
  }

  #create(op: MultiOp & { op: 'create' }, session: bigint, undo: Undo[], told: ModelEvent[]) {
    const { mode = 'persistent', data } = op;
    const parent = this.nodes.get(parentOf(op.path));
    if (parent === undefined) throw new ModelError('NO_NODE');
    const isSequential = mode.includes('Sequential');
    const path = isSequential ? op.path + String(parent.sequence).padStart(10, '0') : op.path;
    if (this.nodes.has(path)) throw new ModelError('NODE_EXISTS');
    const owner = mode.startsWith('ephemeral') ? session : 0n;
    const bytes = data === undefined || data === null ? null : Buffer.from(String(data));
    this.onChange(path, undefined, bytes?.toString() ?? null, session);
    const node = this.#node(bytes, owner);
    this.nodes.set(path, node);
    parent.children.add(nameOf(path));
    parent.sequence += 1;
    parent.stat.pzxid = this.zxid;
    if (owner !== 0n) this.sessions.get(owner)!.ephemerals.add(path);
    undo.push(() => this.#remove(path, []));
    told.push({ type: 'created', path }, { type: 'childrenChanged', path: parentOf(path) });
    return { path, stat: { ...node.stat } };
  }

  #remove(path: string, told: ModelEvent[]): void {
    const node = this.nodes.get(path)!;
    this.nodes.delete(path);
    const parent = this.nodes.get(parentOf(path))!;
    parent.children.delete(nameOf(path));
    parent.stat.pzxid = this.zxid;
    this.sessions.get(node.stat.ephemeralOwner)?.ephemerals.delete(path);
    told.push({ type: 'deleted', path }, { type: 'childrenChanged', path: parentOf(path) });
  }

  #restore(path: string, node: Node): void {
    this.nodes.set(path, node);
    this.nodes.get(parentOf(path))!.children.add(nameOf(path));
    this.sessions.get(node.stat.ephemeralOwner)?.ephemerals.add(path);
  }

  get(path: string): Node {
    const node = this.nodes.get(path);
    if (node === undefined) throw new ModelError('NO_NODE');
    return node;
  }
}
