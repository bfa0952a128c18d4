/**
 * The client: every op of ZooKeeper as a promise, watches as listeners and as streams.
 *
 * Paths are the caller's, below the chroot. What cannot be sent is refused before it is, with an
 * `ArgumentError`; what the server or the session refuses is a `ZkError`.
 */

import { EventEmitter } from 'node:events';
import {
  type Acl,
  type AddWatchMode,
  addWatchModes,
  type ClientInfo,
  errorCodeOf,
  isWithin,
  isZkError,
  type StatView,
  wireOf,
  ZkError,
} from '../protocol/index.ts';
import { ArgumentError, checkOptions, onAbort } from '../support/index.ts';
import {
  checkAcl,
  checkData,
  checkLimits,
  checkListener,
  checkPath,
  checkVersion,
  type DataInput,
} from './arguments.ts';
import type { AuthInfo } from './auth.ts';
import { type CallOptions, Core } from './core.ts';
import { countByWalking, statOfCreated } from './fallbacks.ts';
import {
  type Created,
  type CreateInput,
  checkAnswer,
  checkCounts,
  createPart,
  type DataAndStat,
  MultiError,
  type MultiOp,
  multiPart,
  multiResults,
  type ReadOp,
  type ReadResultsOf,
  type ResultsOf,
  readPart,
} from './multi-ops.ts';
import {
  callTable,
  clientTable,
  closeTable,
  connectTable,
  createTable,
  deleteRecursiveTable,
  protectedTable,
  reconfigTable,
  removeTable,
  versionTable,
  walkTable,
  watchingTable,
  watchTable,
} from './option-tables.ts';
import { type ClientOptions, settingsOf } from './options.ts';
import { createProtected, discard, type ProtectedOptions } from './protected.ts';
import { type RemoveOptions, removeWatches } from './remove-watches.ts';
import type { CloseResult } from './session.ts';
import type { Identity, SessionState } from './session-state.ts';
import {
  createWithParents,
  type DeleteProgress,
  deleteRecursive,
  type Walked,
  type WalkOptions,
  walk,
} from './subtree.ts';
import { type WatchOptions, WatchStream } from './watch-stream.ts';
import type { Listener } from './watches.ts';

/** What `create` takes besides path and data. */
export interface CreateOptions extends Omit<CreateInput, 'data'>, CallOptions {
  /** Make missing parents too, as persistent nodes with the same ACL. */
  readonly parents?: boolean;
}

export interface VersionOptions extends CallOptions {
  /** Only if the node's version is this one. Any unless said. */
  readonly version?: number;
}

export interface CloseOptions {
  /**
   * How long to try to reach a server and to wait for its answer.
   *
   * @default `closeTimeoutMs` of the client, 5 s
   */
  readonly timeoutMs?: number;
}

export interface WatchingOptions extends CallOptions {
  /** Told once, of the next change. */
  readonly watch?: Listener;
}

export interface ReconfigOptions extends CallOptions {
  /** Servers to add or change, as `server.N=host:port:port:role;clientPort`. */
  readonly joining?: readonly string[];
  /** Ids of servers to take out. */
  readonly leaving?: readonly string[];
  /** A whole new membership, in place of joining and leaving. */
  readonly members?: readonly string[];
  /** Only if the configuration in force has this version. */
  readonly fromConfig?: bigint;
}

export interface ClientEvents {
  /** Every change of the session's state, with the one before. */
  state: [state: SessionState, previous: SessionState];
  /** A session has begun: the first, or one after the end of another, with `renew` or behind a read-only server. */
  session: [session: { readonly sessionId: bigint; readonly isFirst: boolean }];
}

export class Client extends EventEmitter<ClientEvents> {
  readonly #core: Core;

  /** Starts to connect at once. `connect()` does the same and waits until a server has us. */
  constructor(servers: string, options: ClientOptions = {}) {
    super();
    checkOptions('Client', options, clientTable);
    this.setMaxListeners(0); // whoever waits for a state listens, and many may
    const settings = settingsOf(servers, options);
    const { requestBytesMax } = settings.session;
    const auth = (options.auth ?? []).map(({ scheme, auth }) =>
      authInfo(scheme, auth, requestBytesMax),
    );
    this.#core = new Core(settings, auth, {
      // In a task of its own: what a listener throws must not end the session.
      onState: (state, previous) => queueMicrotask(() => this.#tell('state', state, previous)),
      onSession: (isFirst) => {
        const sessionId = this.#core.sessionId!;
        queueMicrotask(() => this.#tell('session', { sessionId, isFirst }));
      },
    });
    this.#core.start();
  }

  // ── the session ───────────────────────────────────────────────────────────────────────────────

  /** Where the session is in its life, as of now on this process's own clock. */
  get state(): SessionState {
    return this.#core.state;
  }

  /** Undefined before the first handshake and after the end. */
  get sessionId(): bigint | undefined {
    return this.#core.sessionId;
  }

  /** What another process, or a later one, needs to take this session over. Keep it secret. */
  get identity(): Identity | undefined {
    const { state } = this;
    return state.name === 'connected' || state.name === 'suspended' ? state.identity : undefined;
  }

  /**
   * Aborts at the moment from which the current session may be over, and with it what it holds. `aborted` and
   * `throwIfAborted()` look at the clock first, also in a signal that was kept or passed on. The next session
   * has another signal.
   */
  get sessionSignal(): AbortSignal {
    return this.#core.session.signal;
  }

  /** It was asked to close: what the session holds goes at any moment. */
  get isClosing(): boolean {
    return this.#core.session.isClosing;
  }

  /** The newest transaction that a reply has shown to this session. */
  get lastZxid(): bigint {
    return this.#core.session.lastZxid;
  }

  /** The server that has us now, as host:port, and our end of that link. */
  get server(): string | undefined {
    return this.#core.session.endpoint;
  }

  get localAddress(): string | undefined {
    return this.#core.session.localAddress;
  }

  get chroot(): string {
    return this.#core.settings.chroot;
  }

  /** Requests that were sent and are not answered, and calls that wait for room or for a link. */
  get load(): { readonly inFlight: number; readonly waiting: number; readonly watches: number } {
    const { inFlight, waiting, watches } = this.#core.session;
    return { inFlight, waiting, watches: watches.size };
  }

  /**
   * Resolves once a server has us. Rejects when the session ends first, with a ConnectError that
   * names every server tried when the time is over.
   */
  async connected(options: CallOptions = {}): Promise<this> {
    checkOptions('connected', options, callTable);
    const { signal, timeoutMs } = options;
    const core = this.#core;
    await new Promise<void>((resolve, reject) => {
      let stopHearing: (() => void) | undefined;
      const settle = (work: () => void) => {
        timer?.cancel();
        stopHearing?.();
        this.off('state', look);
        work();
      };
      const look = () => {
        const { state } = this;
        // While it closes the link is still there, and every call is refused all the same.
        if (core.isClosed) settle(failed);
        else if (state.name === 'connected') settle(resolve);
        else if (state.name === 'closed' || state.name === 'authFailed') settle(failed);
        else if (state.name === 'expired' && !core.settings.renew) settle(failed);
      };
      const failed = () => {
        const { cause } = this.state as { cause?: unknown };
        reject(cause instanceof Error ? cause : core.session.endError('connect'));
      };
      const aborted = () => settle(() => reject(signal!.reason));
      const late = () => settle(() => reject(core.session.connectError));
      const timer = timeoutMs === undefined ? undefined : core.clock.after(timeoutMs, late);
      if (signal?.aborted) return aborted();
      stopHearing = signal && onAbort(signal, aborted);
      this.on('state', look);
      look();
    });
    return this;
  }

  /** Proves who we are by a scheme, on this link and every later one. */
  async addAuth(scheme: string, auth: string | Uint8Array): Promise<void> {
    const { requestBytesMax } = this.#core.settings.session;
    await this.#core.addAuth(authInfo(scheme, auth, requestBytesMax));
  }

  /**
   * Ends the session, and with it its ephemeral nodes. Safe to call again.
   *
   * Without a connection it tries to reach a server, for `timeoutMs` and no longer than the session may live.
   * When no server could be asked in time, the session is closed all the same, `sessionEnded` is false, and its
   * ephemeral nodes last until the session timeout is over.
   *
   * @throws ArgumentError when `timeoutMs` is not a number of milliseconds.
   */
  async close(options: CloseOptions = {}): Promise<CloseResult> {
    checkOptions('close', options, closeTable);
    const { timeoutMs } = options;
    checkLimits(undefined, timeoutMs);
    return this.#core.close(timeoutMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // ── nodes ─────────────────────────────────────────────────────────────────────────────────────

  /**
   * Creates a node. Without `data` the node is empty; `null` makes a node with no data at all.
   *
   * @throws ZkError `NODE_EXISTS` when the path is taken, `NO_NODE` when its parent is missing.
   */
  async create(path: string, data?: DataInput, options: CreateOptions = {}): Promise<Created> {
    checkOptions('create', options, createTable);
    const part = createPart(path, data, options, this.#toServer);
    if (options.parents) return createWithParents(this, path, data, options);
    let zxid = 0n;
    const response = await this.#core.call(part.op, part.request as never, path, options, () => {
      zxid = this.#core.session.lastZxid;
    });
    const made = this.#core.toClient(response.path);
    // Servers of 3.4 answer a create with the path alone.
    const stat =
      (response.stat as StatView | undefined) ??
      (await statOfCreated(this, made, zxid, part.request, options));
    return { path: made, stat };
  }

  /**
   * As `create`, with a mark in the name by which a node whose reply was lost is found again, so
   * that it is made once: `_c_<uuid>-name`, as Curator does.
   */
  async createProtected(
    path: string,
    data?: DataInput,
    options: ProtectedOptions = {},
  ): Promise<Created> {
    checkOptions('createProtected', options, protectedTable);
    return createProtected(this, path, data, options, this.#core.clock);
  }

  async delete(path: string, options: VersionOptions = {}): Promise<void> {
    checkOptions('delete', options, versionTable);
    checkPath(path);
    const version = checkVersion(options.version);
    await this.#core.call('delete', { path: this.#core.toServer(path), version }, path, options);
  }

  /** Deletes a node and all below it, deepest first. Returns how many nodes went. */
  async deleteRecursive(path: string, options: CallOptions & DeleteProgress = {}): Promise<number> {
    checkOptions('deleteRecursive', options, deleteRecursiveTable);
    checkPath(path);
    return deleteRecursive(this, path, options);
  }

  /** Deletes a node for certain, through lost links. Gone already is fine. */
  async discard(path: string, options: VersionOptions = {}): Promise<void> {
    checkOptions('discard', options, versionTable);
    return discard(this, path, options, this.#core.clock);
  }

  /** Null when there is none; then a watch tells of its creation. */
  async exists(path: string, options: WatchingOptions = {}): Promise<StatView | null> {
    checkOptions('exists', options, watchingTable);
    checkPath(path);
    const { watch } = options;
    const full = this.#core.toServer(path);
    const onReply =
      watch &&
      ((err: number) => {
        if (err === 0) this.#core.watches.add('data', full, watch);
        if (err === noNode) this.#core.watches.add('exist', full, watch);
      });
    try {
      const request = { path: full, watch: watch !== undefined };
      const { stat } = await this.#core.call('exists', request, path, options, onReply);
      return stat as StatView;
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return null;
      throw error;
    }
  }

  // Not async, unlike most: what is asked for most is handed on without one more promise around it.
  get(path: string, options?: WatchingOptions): Promise<DataAndStat> {
    try {
      checkOptions('get', options, watchingTable);
      checkPath(path);
      const full = this.#core.toServer(path);
      const watch = options?.watch;
      const request = { path: full, watch: watch !== undefined };
      const onReply = watch === undefined ? watch : this.#watchOnSuccess('data', full, watch);
      return this.#core.call('getData', request, path, options, onReply) as Promise<DataAndStat>;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async set(path: string, data: DataInput, options?: VersionOptions): Promise<StatView> {
    checkOptions('set', options, versionTable);
    checkPath(path);
    const version = checkVersion(options?.version);
    const request = { path: this.#core.toServer(path), data: checkData(data), version };
    return (await this.#core.call('setData', request, path, options)).stat as StatView;
  }

  /** The names of the children, in no order. */
  async children(path: string, options: WatchingOptions = {}): Promise<string[]> {
    checkOptions('children', options, watchingTable);
    checkPath(path);
    const full = this.#core.toServer(path);
    const request = { path: full, watch: options.watch !== undefined };
    const onReply = this.#watchOnSuccess('child', full, options.watch);
    return (await this.#core.call('getChildren', request, path, options, onReply)).children;
  }

  async childrenAndStat(
    path: string,
    options: WatchingOptions = {},
  ): Promise<{ readonly children: string[]; readonly stat: StatView }> {
    checkOptions('childrenAndStat', options, watchingTable);
    checkPath(path);
    const full = this.#core.toServer(path);
    const request = { path: full, watch: options.watch !== undefined };
    const onReply = this.#watchOnSuccess('child', full, options.watch);
    const response = await this.#core.call('getChildren2', request, path, options, onReply);
    return response as { children: string[]; stat: StatView };
  }

  async getAcl(path: string, options: CallOptions = {}): Promise<{ acl: Acl[]; stat: StatView }> {
    checkOptions('getAcl', options, callTable);
    checkPath(path);
    const request = { path: this.#core.toServer(path) };
    return (await this.#core.call('getACL', request, path, options)) as {
      acl: Acl[];
      stat: StatView;
    };
  }

  /** `version` is the one of the ACL: `stat.aversion`. */
  async setAcl(path: string, acl: readonly Acl[], options: VersionOptions = {}): Promise<StatView> {
    checkOptions('setAcl', options, versionTable);
    checkPath(path);
    if (acl === undefined) throw new ArgumentError('acl', 'a list of at least one entry is wanted');
    const version = checkVersion(options.version);
    const request = { path: this.#core.toServer(path), acl: checkAcl(acl), version };
    return (await this.#core.call('setACL', request, path, options)).stat as StatView;
  }

  /**
   * Brings the server that has us up to what its leader has done. Where that server is the leader itself, it
   * answers at once, and may not yet have done what its followers told of: `barrier` waits for that too.
   */
  async sync(path = '/', options: CallOptions = {}): Promise<void> {
    checkOptions('sync', options, callTable);
    checkPath(path);
    await this.#core.call('sync', { path: this.#core.toServer(path) }, path, options);
  }

  /**
   * A read after it sees all that was written before it, by whomever, and all that this session has sent: it
   * stands in one line with the writes. It costs as much as a write, and changes nothing.
   */
  async barrier(options: CallOptions = {}): Promise<void> {
    try {
      await this.multi([{ op: 'check', path: '/' }], options);
    } catch (error) {
      // No such chroot, or no right to it: that answer had its place in line too.
      if (!(error instanceof MultiError)) throw error;
    }
  }

  /** All of it or none. Rejects with a `MultiError` that says which op failed and why. */
  async multi<const T extends readonly MultiOp[]>(
    ops: T,
    options: CallOptions = {},
  ): Promise<ResultsOf<T>> {
    checkOptions('multi', options, callTable);
    if (!Array.isArray(ops)) throw new ArgumentError('ops', 'a list is wanted');
    const parts = ops.map((op: MultiOp) => multiPart(op, this.#toServer));
    const results = await this.#core.call('multi', parts, undefined, options);
    try {
      return multiResults(ops, results, (path) => this.#core.toClient(path)) as ResultsOf<T>;
    } catch (error) {
      Error.captureStackTrace(error as Error, this.multi);
      throw error;
    }
  }

  /** Several reads in one request; each has a result of its own, a value or a ZkError. */
  async multiRead<const T extends readonly ReadOp[]>(
    ops: T,
    options: CallOptions = {},
  ): Promise<ReadResultsOf<T>> {
    checkOptions('multiRead', options, callTable);
    if (!Array.isArray(ops)) throw new ArgumentError('ops', 'a list is wanted');
    const parts = ops.map((op: ReadOp) => readPart(op, this.#toServer));
    const results = await this.#core.call('multiRead', parts, undefined, options);
    checkCounts(ops, results);
    return results.map((result, i) => {
      const { op, path } = ops[i]!;
      if (result.op === 'error') return new ZkError(errorCodeOf(result.err), { op, path });
      checkAnswer(ops[i]!, result);
      return result.op === 'getChildren' ? result.response.children : result.response;
    }) as ReadResultsOf<T>;
  }

  /** The ephemeral nodes of this session whose path starts with `prefix`. */
  async getEphemerals(prefix = '/', options: CallOptions = {}): Promise<string[]> {
    checkOptions('getEphemerals', options, callTable);
    checkPath(prefix, 'prefix');
    const request = { prefixPath: this.#core.toServer(prefix) };
    const { ephemerals } = await this.#core.call('getEphemerals', request, prefix, options);
    const { chroot } = this.#core.settings;
    const within = ephemerals.filter((path) => chroot === '' || isWithin(path, chroot));
    return within.map((path) => this.#core.toClient(path));
  }

  /** How many nodes stand below this one, at any depth. */
  async countDescendants(path: string, options: CallOptions = {}): Promise<number> {
    checkOptions('countDescendants', options, callTable);
    checkPath(path);
    const request = { path: this.#core.toServer(path) };
    try {
      return (await this.#core.call('getAllChildrenNumber', request, path, options)).totalNumber;
    } catch (error) {
      if (!isZkError(error, 'UNIMPLEMENTED')) throw error;
      return countByWalking(this, path, options);
    }
  }

  /** Who the server takes us for (3.7 and later). */
  async whoAmI(options: CallOptions = {}): Promise<ClientInfo[]> {
    checkOptions('whoAmI', options, callTable);
    return (await this.#core.call('whoAmI', {}, undefined, options)).clientInfo;
  }

  /** The ensemble's configuration, which stands outside any chroot. */
  async getConfig(options: WatchingOptions = {}): Promise<DataAndStat> {
    checkOptions('getConfig', options, watchingTable);
    const request = { path: configPath, watch: options.watch !== undefined };
    const onReply = this.#watchOnSuccess('data', configPath, options.watch);
    return (await this.#core.call('getData', request, configPath, options, onReply)) as DataAndStat;
  }

  /** Changes the ensemble's membership. */
  async reconfig(options: ReconfigOptions): Promise<DataAndStat> {
    checkOptions('reconfig', options, reconfigTable);
    const { joining, leaving, members, fromConfig = -1n } = options ?? {};
    if ((joining || leaving ? 1 : 0) + (members ? 1 : 0) !== 1) {
      throw new ArgumentError('reconfig', 'either joining and leaving, or members, is wanted');
    }
    const request = {
      joiningServers: joining?.join(',') ?? null,
      leavingServers: leaving?.join(',') ?? null,
      newMembers: members?.join(',') ?? null,
      curConfigId: fromConfig,
    };
    return (await this.#core.call('reconfig', request, configPath, options)) as DataAndStat;
  }

  /** Every node at and below a path, parents before children. */
  walk(path: string, options: WalkOptions = {}): AsyncGenerator<Walked, void, undefined> {
    checkOptions('walk', options, walkTable);
    checkPath(path);
    return walk(this, path, options);
  }

  // ── watches ───────────────────────────────────────────────────────────────────────────────────

  /**
   * Every change of a node, or with `recursive` of all below it too, for as long as the loop runs
   * (3.6 and later). Gap-free: what changed while the link was away is found and told, in order.
   */
  watch(path: string, options: WatchOptions = {}): WatchStream {
    checkOptions('watch', options, watchTable);
    checkPath(path);
    return new WatchStream(this, this.#core, path, options);
  }

  /**
   * A listener that stays, told of every change while there is a link (3.6 and later). What happens
   * while the link is away it does not hear of: `watch` does.
   */
  async addWatch(
    path: string,
    mode: AddWatchMode,
    listener: Listener,
    options: CallOptions = {},
  ): Promise<void> {
    checkOptions('addWatch', options, callTable);
    checkPath(path);
    if (!Object.hasOwn(addWatchModes, mode)) {
      throw new ArgumentError('mode', 'persistent or persistentRecursive is wanted');
    }
    if (listener === undefined) throw new ArgumentError('listener', 'a function is wanted');
    checkListener('listener', listener);
    const full = this.#core.toServer(path);
    const kind = mode === 'persistent' ? 'persistent' : 'recursive';
    const request = { path: full, mode: addWatchModes[mode] };
    try {
      await this.#core.call('addWatch', request, path, options, (err) => {
        if (err === 0) this.#core.watches.add(kind, full, listener);
      });
    } catch (error) {
      if (!isZkError(error, 'UNIMPLEMENTED')) throw error;
      const recursive = kind === 'recursive';
      await this.#core.emulatedWatch({ path, recursive, listener, known: undefined }, options);
    }
  }

  /** Takes watches away: of one kind or any, of one listener or all. NO_WATCHER when there is none. */
  async removeWatches(path: string, options: RemoveOptions = {}): Promise<void> {
    checkOptions('removeWatches', options, removeTable);
    checkPath(path);
    await removeWatches(this.#core, path, options);
  }

  /** As `emit`, except that what one listener throws keeps it from no other. */
  #tell<E extends keyof ClientEvents>(event: E, ...told: ClientEvents[E]): void {
    for (const listener of this.rawListeners(event)) {
      try {
        Reflect.apply(listener, this, told);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

  readonly #toServer = (path: string): string => this.#core.toServer(path);

  #watchOnSuccess(kind: 'data' | 'child', full: string, watch: Listener | undefined) {
    return (
      watch &&
      ((err: number) => {
        if (err === 0) this.#core.watches.add(kind, full, watch);
      })
    );
  }
}

const configPath = '/zookeeper/config';
const noNode = wireOf('NO_NODE');

/** Header, type, and how long scheme and proof are. */
const aroundAuthBytes = 8 + 4 + 4 + 4;

function authInfo(scheme: string, auth: string | Uint8Array, bytesMax: number): AuthInfo {
  if (typeof scheme !== 'string' || scheme === '') {
    throw new ArgumentError('scheme', "a name such as 'digest' is wanted");
  }
  const proof = checkData(auth) ?? Buffer.alloc(0);
  const bytes = aroundAuthBytes + Buffer.byteLength(scheme) + proof.length;
  // It goes first on every link: servers would close one after the other.
  if (bytes > bytesMax) {
    const why = `it takes ${bytes} bytes, and servers take ${bytesMax} at most (jute.maxbuffer)`;
    throw new ArgumentError('auth', why);
  }
  return { scheme, auth: proof };
}

/** Connects and waits until a server has us; rejects, leaving nothing behind, when none does. */
export async function connect(
  servers: string,
  options: ClientOptions & { readonly signal?: AbortSignal } = {},
): Promise<Client> {
  checkOptions('connect', options, connectTable);
  const { signal, ...rest } = options;
  signal?.throwIfAborted();
  const client = new Client(servers, rest);
  const timeoutMs = rest.connectTimeoutMs ?? 15_000;
  try {
    return await client.connected(signal ? { signal, timeoutMs } : { timeoutMs });
  } catch (error) {
    await client.close();
    throw error;
  }
}
