/**
 * A configuration: typed values in nodes, checked, with a history, and there even when ZooKeeper is not.
 *
 *   <base>/<key>                      JSON, nothing around it: any tool can read and write it
 *   <base>/_history/<key>/…           the same JSON for every write that was made through a store
 *
 * In: a schema for each key. Out: snapshots of all keys. A snapshot shows values that stood together
 * on the server at one moment, so what a transaction changed in several keys is seen as a whole or not
 * at all. It is taken as a whole, too: while any key is not JSON, fails its schema or is missing, the
 * last good snapshot stays, and `problems` and `onProblem` say why. The version of a value is the zxid
 * of the transaction that wrote it, so versions only rise. Values are frozen.
 *
 * With `file`, every good snapshot is kept on disk, and where no server answers in time, that one is
 * given, marked as stale. Not promised: that a reader sees every version; one that is slow, or was
 * away, sees the newest. Writes by other tools are seen and checked, but are not in the history.
 */

import { ArgumentError, type CallOptions, type Client, checkClient } from '../client/index.ts';
import { childOf } from '../protocol/index.ts';
import {
  type Clock,
  checkOptions,
  type Deferred,
  deferred,
  systemClock,
  type Timer,
  unlessAborted,
} from '../support/index.ts';
import { checkNodePath } from './cache-arguments.ts';
import { ConfigError } from './config-error.ts';
import { ConfigSaver, readConfigFile, type SavedNode } from './config-file.ts';
import { ConfigHistory, type HistoryEntry } from './config-history.ts';
import { formatJson, JsonError, parseJson } from './config-json.ts';
import { ConfigKeys, type ConfigProblem } from './config-keys.ts';
import { LiveNodes, type Picture } from './config-live.ts';
import type { Schema } from './config-schema.ts';
import { ConfigWriter, type NodeNow } from './config-writer.ts';
import { Deadline } from './deadline.ts';
import { configTable, configUpdateTable, rollbackTable, signalTable } from './option-tables.ts';

type Values = Readonly<Record<string, unknown>>;

export interface ConfigOptions<V extends Values> {
  /** What each key has to hold. These are the keys. */
  readonly schemas: { readonly [K in keyof V]: Schema<V[K]> };
  /** What a key holds while it has no node. Without one, a missing node is a problem. */
  readonly defaults?: { readonly [K in keyof V]?: unknown };
  /** Versions that are kept of each key; 0 for none. 20. */
  readonly historyMax?: number;
  /** Where the last good snapshot is kept, and found when no server answers. */
  readonly file?: string;
  /** How long a server may take to answer before the file is taken. 3 s. */
  readonly fileAfterMs?: number;
  readonly onProblem?: (problem: ConfigProblem) => void;
  readonly clock?: Clock;
}

export interface ConfigSnapshot<V extends Values> {
  readonly values: V;
  /** The newest of `versions`. */
  readonly version: bigint;
  /** The transaction that wrote each value; null for a default. */
  readonly versions: { readonly [K in keyof V]: bigint | null };
  readonly source: 'server' | 'file';
  /** Null when it is up to date; else, in milliseconds since 1970, how old it may be. */
  readonly staleSinceMs: number | null;
}

export interface ConfigVersion<T> {
  readonly version: bigint;
  /** By the server's clock, in milliseconds since 1970. */
  readonly writtenMs: number;
  /** Undefined when it no longer passes: `problem` says why. */
  readonly value: T | undefined;
  readonly problem: Error | null;
}

export interface UpdateOptions extends CallOptions {
  /** How often it is tried while others write, too. 10. */
  readonly triesMax?: number;
}

interface Known<V extends Values> {
  readonly values: V;
  readonly nodes: ReadonlyMap<string, SavedNode>;
  readonly source: 'server' | 'file';
  /** Of the file: when it was written. */
  readonly savedMs: number | null;
  readonly order: number;
}

export class ConfigStore<V extends Values> implements AsyncIterable<ConfigSnapshot<V>> {
  readonly path: string;
  readonly #options: ConfigOptions<V>;
  readonly #clock: Clock;
  readonly #keys: ConfigKeys;
  readonly #saver: ConfigSaver | undefined;
  readonly #live: LiveNodes;
  readonly #history: ConfigHistory;
  readonly #writer: ConfigWriter;
  readonly #ready = deferred();
  readonly #fileTimer: Timer | undefined;
  #known: Known<V> | undefined;
  #problems: readonly ConfigProblem[] = [];
  #news: Deferred<void> = deferred();
  #end: { readonly error?: unknown } | undefined;
  /** Begins to load at once. */
  constructor(client: Client, path: string, options: ConfigOptions<V>) {
    checkClient('ConfigStore', client);
    checkOptions('ConfigStore', options, configTable);
    checkNodePath('path', path);
    const { historyMax = 20, clock, file, fileAfterMs = 3_000 } = options;
    if (!Number.isInteger(historyMax) || historyMax < 0 || historyMax > 1_000) {
      throw new ArgumentError('historyMax', '0 to 1000 is wanted');
    }
    this.path = path;
    this.#keys = new ConfigKeys(options.schemas, options.defaults ?? {}, (key) =>
      childOf(path, key),
    );
    this.#options = options;
    this.#clock = clock ?? systemClock;
    this.#history = new ConfigHistory(client, path, historyMax);
    this.#writer = new ConfigWriter(client, path, this.#history, clock);
    this.#live = new LiveNodes(
      client,
      path,
      this.#keys.all,
      {
        onPicture: (picture) => this.#seen(picture),
        onFailure: (errors) =>
          this.#report(errors.map((error) => ({ path: error.path ?? path, error }))),
      },
      clock,
    );
    this.#ready.promise.catch(() => {}); // told by every loop, too
    this.#live.ended.then(
      () => this.#finish({}),
      (error: unknown) => this.#finish({ error }),
    );
    if (file !== undefined) {
      this.#saver = new ConfigSaver(file, path, (error) => this.#tell({ path: file, error }));
      this.#fileTimer = this.#clock.after(fileAfterMs, () => void this.#takeFile(file), true);
    }
  }

  // ── reading ───────────────────────────────────────────────────────────────────────────────────

  /** Resolves once there is a good snapshot, of the server or of the file. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** What is in use now. Throws NOT_LOADED before `ready`. */
  get snapshot(): ConfigSnapshot<V> {
    const known = this.#known;
    if (known === undefined) {
      const why =
        this.#problems.map(({ error }) => error.message).join('; ') || 'await ready first';
      throw new ConfigError('NOT_LOADED', `${this.path}: ${why}`);
    }
    const versions = Object.fromEntries(
      this.#keys.all.map((key) => [key, known.nodes.get(key)?.version ?? null]),
    ) as { [K in keyof V]: bigint | null };
    const all = Object.values(versions) as (bigint | null)[];
    const version = all.reduce<bigint>(
      (most, one) => (one !== null && one > most ? one : most),
      0n,
    );
    const { values, source } = known;
    return { values, version, versions, source, staleSinceMs: this.#staleSinceMs(known) };
  }

  get<K extends keyof V & string>(key: K): V[K] {
    this.#keys.refuseUnknown(key);
    return this.snapshot.values[key];
  }

  /** What keeps the newest state out, now. Empty when nothing does. */
  get problems(): readonly ConfigProblem[] {
    return this.#problems;
  }

  #staleSinceMs({ source, savedMs }: Known<V>): number | null {
    if (source === 'file') return savedMs;
    const { state } = this.#live;
    return 'sinceMs' in state ? state.sinceMs : null;
  }

  /** Every snapshot from now on, beginning with the present one. A slow loop sees the newest. */
  async *changes(
    options: { readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<ConfigSnapshot<V>, void, undefined> {
    checkOptions('changes', options, signalTable);
    const { signal } = options;
    let order = 0;
    for (;;) {
      signal?.throwIfAborted();
      const { promise } = this.#news;
      if (this.#known !== undefined && this.#known.order > order) {
        order = this.#known.order;
        yield this.snapshot;
      } else if (this.#end !== undefined) {
        if (this.#end.error !== undefined) throw this.#end.error;
        return;
      } else await (signal ? unlessAborted(promise, signal) : promise);
    }
  }

  [Symbol.asyncIterator](): AsyncGenerator<ConfigSnapshot<V>, void, undefined> {
    return this.changes();
  }

  /** As `changes`, of one key: told when its value was written anew. */
  async *watch<K extends keyof V & string>(
    key: K,
    options: { readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<{ readonly value: V[K]; readonly version: bigint | null }, void, undefined> {
    this.#keys.refuseUnknown(key);
    let last: bigint | null | undefined;
    for await (const { values, versions } of this.changes(options)) {
      if (versions[key] === last) continue;
      last = versions[key];
      yield { value: values[key], version: last };
    }
  }

  // ── writing ───────────────────────────────────────────────────────────────────────────────────

  /**
   * Works out a new value from the one that is there, and writes it if nobody else has written
   * meanwhile; else begins again. Undefined where there is no node and no default. Returns the version.
   */
  async update<K extends keyof V & string>(
    key: K,
    change: (value: V[K] | undefined) => unknown,
    options: UpdateOptions = {},
  ): Promise<bigint> {
    checkOptions('update', options, configUpdateTable);
    this.#keys.refuseUnknown(key);
    const version = await this.#write([key], options, async (nodes) => {
      const value = await change(this.#keys.valueOf(nodes.get(key)!) as V[K] | undefined);
      return { [key]: value };
    });
    return version!;
  }

  /** Writes a value, whatever is there now, garbage included. */
  async set<K extends keyof V & string>(
    key: K,
    value: unknown,
    options: UpdateOptions = {},
  ): Promise<bigint> {
    checkOptions('set', options, configUpdateTable);
    this.#keys.refuseUnknown(key);
    return (await this.#write([key], options, async () => ({ [key]: value })))!;
  }

  /**
   * As `update`, of several keys in one transaction: the change is handed all values and returns
   * those that are to be others. Null when it returned none.
   */
  async updateAll(
    change: (values: Partial<V>) => { readonly [K in keyof V]?: unknown } | Promise<object>,
    options: UpdateOptions = {},
  ): Promise<bigint | null> {
    checkOptions('updateAll', options, configUpdateTable);
    return this.#write(this.#keys.all, options, async (nodes) => {
      const values = [...nodes].map(([key, node]) => [key, this.#keys.valueOf(node)]);
      return change(Object.fromEntries(values) as Partial<V>);
    });
  }

  /** What a key held, newest first, as far back as the history goes. */
  async history<K extends keyof V & string>(
    key: K,
    options: CallOptions = {},
  ): Promise<ConfigVersion<V[K]>[]> {
    this.#keys.refuseUnknown(key);
    const entries = await this.#history.list(key, options);
    return entries.map(({ version, writtenMs, data }) => {
      try {
        const value = this.#keys.parsed(key, data) as V[K];
        return { version, writtenMs, value, problem: null };
      } catch (error) {
        return { version, writtenMs, value: undefined, problem: error as Error };
      }
    });
  }

  /**
   * Brings keys, all unless said, back to what they held at a version, in one transaction. That is a
   * new write: the history goes on. Returns its version, or null when nothing differs.
   */
  async rollback(
    version: bigint,
    options: UpdateOptions & { readonly keys?: readonly (keyof V & string)[] } = {},
  ): Promise<bigint | null> {
    checkOptions('rollback', options, rollbackTable);
    const { keys, ...update } = options;
    const { triesMax: _, ...call } = update;
    if (typeof version !== 'bigint') throw new ArgumentError('version', 'a bigint is wanted');
    const wanted = keys ?? this.#keys.all;
    for (const key of wanted) this.#keys.refuseUnknown(key);
    return this.#write(wanted, update, async (nodes) => {
      const changes: Record<string, unknown> = {};
      for (const node of nodes.values()) {
        if (node.mzxid === null || node.mzxid <= version) continue;
        const entries = await this.#history.list(node.key, call);
        const entry = entries.find((one) => one.version <= version);
        if (entry === undefined) throw this.#noVersion(node.key, version, entries);
        changes[node.key] = parseJson(entry.data, `${this.path}/${node.key}`);
      }
      return changes;
    });
  }

  /** Lets go of everything. What was in use stays readable. */
  async close(): Promise<void> {
    this.#fileTimer?.cancel();
    await this.#live.close();
    this.#finish({});
    await this.#saver?.settled();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // ── inside ────────────────────────────────────────────────────────────────────────────────────

  async #write(
    keys: readonly string[],
    { triesMax, ...wait }: UpdateOptions,
    change: (nodes: ReadonlyMap<string, NodeNow>) => Promise<object>,
  ): Promise<bigint | null> {
    const deadline = new Deadline(wait, this.#clock);
    const options = { signal: deadline.signal, ...(triesMax && { triesMax }) };
    try {
      deadline.signal.throwIfAborted();
      const plan = async (nodes: ReadonlyMap<string, NodeNow>) => {
        const texts = new Map<string, string>();
        for (const [key, value] of Object.entries(await change(nodes))) {
          this.#keys.refuseUnknown(key);
          const text = formatJson(value, childOf(this.path, key));
          this.#keys.checked(key, JSON.parse(text)); // as a reader will
          texts.set(key, text);
        }
        return texts;
      };
      return await this.#writer.write(keys, plan, options);
    } finally {
      deadline.stop();
    }
  }

  #noVersion(key: string, version: bigint, entries: readonly HistoryEntry[]): ConfigError {
    const kept = entries.map((one) => `0x${one.version.toString(16)}`).join(', ') || 'none';
    const why = `${childOf(this.path, key)} at 0x${version.toString(16)} is not in its history`;
    return new ConfigError('NO_SUCH_VERSION', `${why}, which has ${kept}`);
  }

  #seen(picture: Picture): void {
    const { nodes, values, problems } = this.#keys.read(picture);
    if (problems.length > 0) {
      this.#report(problems);
      return;
    }
    this.#problems = [];
    if (!this.#take(values as V, nodes, 'server', null)) return;
    this.#saver?.save({ savedMs: this.#clock.wallMs(), nodes });
  }

  async #takeFile(file: string): Promise<void> {
    try {
      const saved = await readConfigFile(file, this.path);
      if (this.#known !== undefined || this.#end !== undefined) return;
      if (saved === null) throw new JsonError(`${file}: there is no such file`);
      const { values, problems } = this.#keys.valuesOf(saved.nodes, (key) => `${file}: ${key}`);
      if (problems.length > 0) this.#report([...this.#problems, ...problems]);
      else this.#take(values as V, saved.nodes, 'file', saved.savedMs);
    } catch (error) {
      this.#report([...this.#problems, { path: file, error: error as Error }]);
    }
  }

  /** False when it is what is in use already. */
  #take(
    values: V,
    nodes: ReadonlyMap<string, SavedNode>,
    source: 'server' | 'file',
    savedMs: number | null,
  ): boolean {
    const before = this.#known;
    const versionOf = (key: string, from = nodes) => from.get(key)?.version ?? null;
    const isSame = this.#keys.all.every((key) => versionOf(key) === versionOf(key, before?.nodes));
    if (before?.source === source && isSame) return false;
    this.#known = { values, nodes, source, savedMs, order: (before?.order ?? 0) + 1 };
    this.#ready.resolve();
    this.#wake();
    return true;
  }

  #report(problems: readonly ConfigProblem[]): void {
    this.#problems = problems;
    for (const problem of problems) this.#tell(problem);
  }

  /** What it throws is its own, and does no harm here. */
  #tell(problem: ConfigProblem): void {
    try {
      this.#options.onProblem?.(problem);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }

  #wake(): void {
    this.#news.resolve();
    this.#news = deferred();
  }

  #finish(end: { readonly error?: unknown }): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#fileTimer?.cancel();
    this.#ready.reject(end.error ?? new Error(`configuration ${this.path} was closed`));
    this.#wake();
  }
}
