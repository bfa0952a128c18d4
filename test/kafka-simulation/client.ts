/**
 * What a group needs of a client, on the model server: the same promises as the real one makes.
 *
 * A request takes its time, both ways, in order. A link that breaks loses replies: writes then have an
 * unknown outcome, reads are asked again. The session is over, on this process's own clock, a timeout
 * after the last answered request left; a stopped process finds that out before anything else. With a
 * new session everything begins anew.
 */

import { EventEmitter } from 'node:events';
import {
  type ClientEvents,
  type CreateOptions,
  type DataInput,
  type Listener,
  MultiError,
  type MultiOp,
  type SessionState,
  type StatView,
  type VersionOptions,
  type WatchingOptions,
  ZkError,
} from '../../src/client/index.ts';
import type { GroupClient } from '../../src/kafka/index.ts';
import { type Deferred, deferred } from '../../src/support/index.ts';
import {
  ModelError,
  type ModelEvent,
  type ModelServer,
  type ServerSession,
  type WatchKind,
} from './server.ts';
import type { Process, World } from './world.ts';

interface Call {
  readonly op: string;
  readonly isWrite: boolean;
  readonly work: (session: ServerSession) => unknown;
  readonly onReply?: (result: unknown, error: ModelError | undefined) => void;
  readonly result: Deferred<unknown>;
  readonly ops: readonly MultiOp[] | undefined;
  sentMs: number;
}

export interface Network {
  /** One way. */
  readonly latencyMs: () => number;
  readonly sessionTimeoutMs: number;
}

export class ModelClient extends EventEmitter<ClientEvents> {
  readonly #world: World;
  readonly #server: ModelServer;
  readonly #process: Process;
  readonly #network: Network;
  readonly #listeners: Record<WatchKind | 'exist', Map<string, Set<Listener>>> = {
    data: new Map(),
    exist: new Map(),
    child: new Map(),
  };
  #inFlight: Call[] = [];
  #waiting: Call[] = [];
  #session: ServerSession | undefined;
  #life = new AbortController();
  #name: 'connecting' | 'connected' | 'suspended' | 'closed' = 'connecting';
  #deadlineMs = 0;
  /** Counts links: what belongs to an old one is lost. */
  #link = 0;
  #isLinkUp = true;
  #lastToServerMs = 0;
  #lastToClientMs = 0;
  #seenZxid = 0n;
  #isClosed = false;

  constructor(world: World, server: ModelServer, process: Process, network: Network) {
    super();
    this.setMaxListeners(0);
    this.#world = world;
    this.#server = server;
    this.#process = process;
    this.#network = network;
    process.onResume.add(() => this.#checkClock());
    this.#dial();
    this.#ping();
  }

  get asGroupClient(): GroupClient {
    return this as unknown as GroupClient;
  }

  // ── the session ───────────────────────────────────────────────────────────────────────────────

  get state(): SessionState {
    this.#checkClock();
    const identity = {
      sessionId: this.#session?.id ?? 0n,
      password: Buffer.alloc(16),
      timeoutMs: this.#network.sessionTimeoutMs,
    };
    const deadlineMs = this.#deadlineMs;
    if (this.#name === 'connected')
      return { name: 'connected', identity, readOnly: false, deadlineMs };
    if (this.#name === 'suspended') return { name: 'suspended', identity, deadlineMs };
    return this.#name === 'closed' ? { name: 'closed' } : connecting;
  }

  get sessionId(): bigint | undefined {
    this.#checkClock();
    return this.#session?.id;
  }

  get sessionSignal(): AbortSignal {
    this.#checkClock();
    return this.#life.signal;
  }

  #checkClock(): void {
    if (this.#session !== undefined && this.#world.nowMs >= this.#deadlineMs) this.#expired();
  }

  #expired(): void {
    this.#session = undefined;
    this.#link += 1;
    this.#seenZxid = 0n;
    const life = this.#life;
    this.#life = new AbortController();
    const calls = [...this.#inFlight, ...this.#waiting];
    const sent = new Set(this.#inFlight);
    this.#inFlight = [];
    this.#waiting = [];
    this.#move('connecting');
    const reason = new ZkError('SESSION_EXPIRED');
    life.abort(reason);
    for (const call of calls) {
      const outcomeUnknown = call.isWrite && sent.has(call);
      call.result.reject(new ZkError('SESSION_EXPIRED', { op: call.op, outcomeUnknown }));
    }
    for (const paths of Object.values(this.#listeners)) {
      const all = [...paths.values()].flatMap((set) => [...set]);
      paths.clear();
      for (const listener of all)
        queueMicrotask(() => listener({ type: 'none', path: '', zxid: null }));
    }
    this.#dial();
  }

  #move(name: 'connecting' | 'connected' | 'suspended' | 'closed'): void {
    const previous = this.#name;
    if (previous === name) return;
    this.#name = name;
    queueMicrotask(() => this.emit('state', this.state, { name: previous } as SessionState));
  }

  #dial(): void {
    if (this.#isClosed) return;
    const link = this.#link;
    const sentMs = this.#world.nowMs;
    this.#world.after(2 * this.#network.latencyMs(), () =>
      this.#process.deliver(() => {
        if (link !== this.#link || this.#isClosed) return;
        if (this.#isLinkUp) this.#shakeHands(sentMs);
        else
          this.#world.after(100, () =>
            this.#process.deliver(() => link === this.#link && this.#dial()),
          );
      }),
    );
  }

  #shakeHands(sentMs: number): void {
    const { sessionTimeoutMs } = this.#network;
    this.#checkClock();
    if (this.#session !== undefined && !this.#server.sessions.has(this.#session.id)) {
      this.#expired();
      return;
    }
    const isNew = this.#session === undefined;
    this.#session ??= this.#server.open(sessionTimeoutMs);
    const session = this.#session;
    session.heardMs = this.#world.nowMs;
    this.#deadlineMs = Math.max(this.#deadlineMs, sentMs + sessionTimeoutMs);
    if (isNew) this.#deadlineMs = sentMs + sessionTimeoutMs;
    const link = this.#link;
    session.tell = (event) => this.#toClient(link, () => this.#heard(event));
    if (!isNew) this.#setWatches(session);
    this.#move('connected');
    const calls = this.#waiting;
    this.#waiting = [];
    for (const call of calls) this.#send(call);
  }

  #setWatches(session: ServerSession): void {
    const { nodes } = this.#server;
    const tell = (event: ModelEvent) => this.#toClient(this.#link, () => this.#heard(event));
    for (const path of this.#listeners.data.keys()) {
      const node = nodes.get(path);
      if (node === undefined) tell({ type: 'deleted', path });
      else if (node.stat.mzxid > this.#seenZxid) tell({ type: 'dataChanged', path });
      else this.#server.watch('data', path, session.id);
    }
    for (const path of this.#listeners.exist.keys()) {
      if (nodes.has(path)) tell({ type: 'created', path });
      else this.#server.watch('data', path, session.id);
    }
    for (const path of this.#listeners.child.keys()) {
      const node = nodes.get(path);
      if (node === undefined) tell({ type: 'deleted', path });
      else if (node.stat.pzxid > this.#seenZxid) tell({ type: 'childrenChanged', path });
      else this.#server.watch('child', path, session.id);
    }
  }

  /** The link breaks; for as long as it is down, nothing goes through. Infinity: for good. */
  cut(forMs: number): void {
    if (!this.#isLinkUp || this.#isClosed) return;
    this.#isLinkUp = false;
    this.#link += 1;
    if (this.#session !== undefined) this.#server.unlink(this.#session.id);
    if (Number.isFinite(forMs)) {
      this.#world.after(forMs, () => {
        this.#isLinkUp = true;
      });
    }
    const link = this.#link;
    this.#world.after(1, () =>
      this.#process.deliver(() => {
        if (link !== this.#link) return;
        this.#lost();
      }),
    );
  }

  heal(): void {
    this.#isLinkUp = true;
  }

  #lost(): void {
    this.#checkClock();
    const calls = this.#inFlight;
    this.#inFlight = [];
    if (this.#session !== undefined) this.#move('suspended');
    for (const call of calls) {
      if (call.isWrite) call.result.reject(new ZkError('CONNECTION_LOSS', { op: call.op }));
      else this.#waiting.push(call);
    }
    this.#dial();
  }

  #ping(): void {
    if (this.#isClosed || this.#process.state === 'dead') return;
    this.#world.after(this.#network.sessionTimeoutMs / 3, () =>
      this.#process.deliver(() => {
        if (this.#name === 'connected') {
          this.#call({ op: 'ping', isWrite: false, work: () => null }).catch(() => {});
        }
        this.#ping();
      }),
    );
  }

  /** Ends the session as `close` of a real client does. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    const session = this.#session;
    this.#isClosed = true;
    this.#life.abort(new ZkError('SESSION_EXPIRED', { detail: 'the client was closed' }));
    this.#session = undefined;
    this.#link += 1;
    this.#move('closed');
    if (session !== undefined)
      this.#world.after(this.#network.latencyMs(), () => this.#server.end(session.id));
  }

  // ── calls ─────────────────────────────────────────────────────────────────────────────────────

  #call(
    input: Omit<Call, 'result' | 'sentMs' | 'ops'> & { ops?: readonly MultiOp[] },
  ): Promise<unknown> {
    this.#checkClock();
    const call: Call = { ops: undefined, ...input, result: deferred(), sentMs: 0 };
    if (this.#isClosed) return Promise.reject(new ZkError('SESSION_EXPIRED', { op: call.op }));
    if (this.#name === 'connected') this.#send(call);
    else this.#waiting.push(call);
    return call.result.promise;
  }

  #send(call: Call): void {
    const link = this.#link;
    const session = this.#session!;
    call.sentMs = this.#world.nowMs;
    this.#inFlight.push(call);
    this.#lastToServerMs = Math.max(
      this.#lastToServerMs,
      this.#world.nowMs + this.#network.latencyMs(),
    );
    const wasUp = this.#isLinkUp;
    this.#world.at(this.#lastToServerMs, () => {
      // What left before the break arrives all the same; its reply finds no way back.
      if (!wasUp || !this.#server.sessions.has(session.id)) {
        if (wasUp) this.#toClient(link, () => this.#expired());
        return;
      }
      session.heardMs = this.#world.nowMs;
      if (call.op !== 'ping') this.#server.count(call.op);
      let result: unknown;
      let error: ModelError | undefined;
      try {
        result = call.work(session);
      } catch (thrown) {
        if (!(thrown instanceof ModelError)) throw thrown;
        error = thrown;
      }
      const zxid = this.#server.zxid;
      this.#toClient(link, () => this.#replied(call, result, error, zxid));
    });
  }

  #replied(call: Call, result: unknown, error: ModelError | undefined, zxid: bigint): void {
    const at = this.#inFlight.indexOf(call);
    if (at === -1) return;
    this.#inFlight.splice(at, 1);
    this.#seenZxid = zxid;
    this.#deadlineMs = Math.max(this.#deadlineMs, call.sentMs + this.#network.sessionTimeoutMs);
    call.onReply?.(result, error);
    if (error === undefined) call.result.resolve(result);
    else if (call.ops !== undefined && error.index !== undefined) {
      const { index, code } = error;
      call.result.reject(new MultiError(code, index, call.ops[index]!, call.ops.length));
    } else call.result.reject(new ZkError(error.code, { op: call.op }));
  }

  #toClient(link: number, work: () => void): void {
    this.#lastToClientMs = Math.max(
      this.#lastToClientMs,
      this.#world.nowMs + this.#network.latencyMs(),
    );
    this.#world.at(this.#lastToClientMs, () => {
      if (!this.#isLinkUp) return;
      this.#process.deliver(() => {
        this.#checkClock();
        if (link === this.#link) work();
      });
    });
  }

  #heard({ type, path }: ModelEvent): void {
    const kinds =
      type === 'childrenChanged'
        ? (['child'] as const)
        : type === 'deleted'
          ? (['data', 'exist', 'child'] as const)
          : (['data', 'exist'] as const);
    const found = new Set<Listener>();
    for (const kind of kinds) {
      for (const listener of this.#listeners[kind].get(path) ?? []) found.add(listener);
      this.#listeners[kind].delete(path);
    }
    for (const listener of found) queueMicrotask(() => listener({ type, path, zxid: null }));
  }

  #listen(kind: WatchKind | 'exist', path: string, listener: Listener | undefined): void {
    if (listener === undefined) return;
    const set = this.#listeners[kind].get(path) ?? new Set();
    this.#listeners[kind].set(path, set);
    set.add(listener);
  }

  // ── the face of a client ──────────────────────────────────────────────────────────────────────

  async get(path: string, { watch }: WatchingOptions = {}) {
    return this.#call({
      op: 'get',
      isWrite: false,
      work: (session) => {
        const { data, stat } = this.#server.get(path);
        if (watch) this.#server.watch('data', path, session.id);
        return { data, stat: { ...stat } as unknown as StatView };
      },
      onReply: (_, error) => error ?? this.#listen('data', path, watch),
    });
  }

  async exists(path: string, { watch }: WatchingOptions = {}) {
    return this.#call({
      op: 'exists',
      isWrite: false,
      work: (session) => {
        const node = this.#server.nodes.get(path);
        if (watch) this.#server.watch('data', path, session.id);
        return node === undefined ? null : ({ ...node.stat } as unknown as StatView);
      },
      onReply: (result) => this.#listen(result === null ? 'exist' : 'data', path, watch),
    });
  }

  async children(path: string, { watch }: WatchingOptions = {}) {
    return this.#call({
      op: 'children',
      isWrite: false,
      work: (session) => {
        const { children } = this.#server.get(path);
        if (watch) this.#server.watch('child', path, session.id);
        return [...children];
      },
      onReply: (_, error) => error ?? this.#listen('child', path, watch),
    });
  }

  async create(path: string, data?: DataInput, options: CreateOptions = {}): Promise<unknown> {
    const { parents, signal: _, timeoutMs: __, ...input } = options;
    try {
      return await this.#write('create', [
        { op: 'create', path, ...(data !== undefined && { data }), ...input },
      ]);
    } catch (error) {
      if (!parents || !(error instanceof ZkError) || error.code !== 'NO_NODE') throw error;
    }
    const parent = path.slice(0, path.lastIndexOf('/'));
    try {
      await this.create(parent, '', { parents: true });
    } catch (error) {
      if (!(error instanceof ZkError) || error.code !== 'NODE_EXISTS') throw error;
    }
    return this.create(path, data, options);
  }

  async set(path: string, data: string, options: VersionOptions = {}) {
    const { version } = options;
    const op: MultiOp = { op: 'set', path, data, ...(version !== undefined && { version }) };
    return ((await this.#write('set', [op])) as { stat: unknown }).stat;
  }

  async delete(path: string, options: VersionOptions = {}) {
    const { version } = options;
    await this.#write('delete', [
      { op: 'delete', path, ...(version !== undefined && { version }) },
    ]);
  }

  async multi(ops: readonly MultiOp[]) {
    return this.#call({
      op: 'multi',
      isWrite: true,
      work: (session) => this.#server.apply(ops, session.id),
      ops,
    });
  }

  #marks = 0;

  async createProtected(
    path: string,
    data?: DataInput,
    { signal: _, ...options }: CreateOptions = {},
  ): Promise<unknown> {
    const parent = path.slice(0, path.lastIndexOf('/'));
    const mark = `_c_${this.#session?.id ?? 0n}x${this.#marks++}-`;
    try {
      return await this.create(`${parent}/${mark}${path.slice(parent.length + 1)}`, data, options);
    } catch (error) {
      if (!(error instanceof ZkError) || error.code !== 'CONNECTION_LOSS') throw error;
    }
    const names = (await this.children(parent)) as string[];
    const name = names.find((one) => one.startsWith(mark));
    return name === undefined
      ? this.createProtected(path, data, options)
      : { path: `${parent}/${name}`, stat: await this.exists(`${parent}/${name}`) };
  }

  async removeWatches(path: string, { listener }: { listener?: Listener } = {}) {
    for (const kind of ['data', 'exist', 'child'] as const) {
      const set = this.#listeners[kind].get(path);
      if (listener !== undefined) set?.delete(listener);
      if (set?.size === 0) this.#listeners[kind].delete(path);
    }
    const isLeft = Object.values(this.#listeners).some((paths) => paths.has(path));
    if (isLeft || this.#name !== 'connected') return;
    await this.#call({
      op: 'removeWatches',
      isWrite: false,
      work: (session) => this.#server.unwatch(path, session.id),
    }).catch(() => {}); // as the real one with \`local\`
  }

  async sync() {}

  #write(op: string, ops: readonly MultiOp[]): Promise<unknown> {
    return this.#call({
      op,
      isWrite: true,
      work: (session) => this.#server.apply(ops, session.id)[0],
    });
  }
}

const connecting: SessionState = { name: 'connecting' };
