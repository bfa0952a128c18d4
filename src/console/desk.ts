/**
 * Everything that routes work with, in one place, made once and closed once; and the routes that are too
 * small for a room of their own.
 */

import type { CallOptions } from '../client/index.ts';
import { addressKey, type Clock } from '../support/index.ts';
import type { Access, Asking, Caller } from './access.ts';
import { Alignment } from './alignment.ts';
import { limits } from './api.ts';
import { AuditLog } from './audit.ts';
import { Bench } from './bench.ts';
import { Changes } from './changes.ts';
import { Clients } from './clients.ts';
import { ConsoleError } from './console-error.ts';
import { Controls } from './controls.ts';
import { Copying } from './copying.ts';
import { ElectionTerms } from './election-terms.ts';
import { Feed } from './feed.ts';
import { GroupControls } from './group-controls.ts';
import { Groups } from './groups.ts';
import { Journal } from './journal.ts';
import { Kafka, scanKeptMs } from './kafka.ts';
import { KafkaControls } from './kafka-controls.ts';
import { LiveTree } from './live.ts';
import { Metrics } from './metrics.ts';
import { hex } from './node-text.ts';
import { Recipes } from './recipes.ts';
import { charged } from './request-budget.ts';
import { ShellWitness, type Witnessed } from './shell-witness.ts';
import type { ConsoleSources, ServersSeen } from './sources.ts';
import { orNull, TreeReader } from './tree.ts';
import type {
  AuditEntry,
  AuditView,
  HistoryView,
  OverviewView,
  SessionView,
  ShellView,
} from './views.ts';

const beatMs = 15_000;
/** How often a page that shows lag looks again: no watch tells that records came. */
const lagMs = 5_000;
/** How often a page is told of what command lines wrote. */
const journalMs = 2_000;
const nothingSeen: ServersSeen = {
  servers: [],
  findings: [],
  quorum: { hasQuorum: false, sentence: 'nobody asks the servers' },
};

export interface DeskOptions {
  readonly sources: ConsoleSources;
  readonly access: Access;
  readonly clock: Clock;
  readonly onAudit: (entry: AuditEntry) => void;
  /** Of the saved ones; null: where the console was started for. */
  readonly context?: string | null;
  /** Why nothing may be changed here, whoever asks. */
  readonly readOnly?: string | null;
  readonly hasContexts?: boolean;
}

export class Desk {
  readonly sources: ConsoleSources;
  readonly access: Access;
  readonly feed: Feed;
  readonly live: LiveTree;
  readonly tree: TreeReader;
  readonly audit: AuditLog;
  readonly journal: Journal;
  readonly terms: ElectionTerms;
  readonly bench: Bench;
  readonly changes: Changes;
  readonly controls: Controls;
  readonly groupControls: GroupControls;
  readonly kafkaControls: KafkaControls;
  readonly clients: Clients;
  readonly recipes: Recipes;
  readonly kafka: Kafka;
  readonly groups: Groups;
  readonly alignment: Alignment;
  readonly metrics: Metrics;
  readonly context: string | null;
  readonly copying: Copying;
  readonly #readOnly: string | null;
  readonly #hasContexts: boolean;
  readonly #clock: Clock;
  readonly #closing = new AbortController();
  #beat: { cancel(): void } | undefined;
  #lag: { cancel(): void } | undefined;
  #reading: { cancel(): void } | undefined;
  #stale: { cancel(): void } | undefined;
  #demo: Promise<void> | undefined;

  constructor({ sources, access, clock, onAudit, ...place }: DeskOptions) {
    const { client } = sources;
    const reading = charged(client);
    this.context = place.context ?? null;
    this.#readOnly = place.readOnly ?? null;
    this.#hasContexts = place.hasContexts ?? false;
    this.sources = sources;
    this.access = access;
    this.#clock = clock;
    this.feed = new Feed();
    this.tree = new TreeReader(reading);
    this.audit = new AuditLog((entry, isNew) => {
      this.feed.send('audit', entry);
      if (isNew) onAudit(entry);
    });
    this.journal = new Journal(client, this.audit, sources.journal);
    this.bench = new Bench(client, this.audit);
    this.changes = new Changes(reading, this.audit);
    this.controls = new Controls(reading, this.audit);
    this.groupControls = new GroupControls(reading, this.audit, sources.offsets);
    this.kafkaControls = new KafkaControls(reading, this.audit);
    this.copying = new Copying({ ...sources, client: reading }, this.audit);
    this.clients = new Clients(sources, this.signal);
    this.terms = new ElectionTerms(reading, sources.lineHistory, () => clock.wallMs());
    this.recipes = new Recipes(reading, () => this.live.isLive, this.terms);
    this.groups = new Groups(reading, sources.offsets, clock, sources.whyNoOffsets);
    this.kafka = new Kafka(reading, {
      groups: this.groups,
      history: sources.history,
      onStale: () => this.#kafkaLater(),
    });
    this.live = new LiveTree(client, this.feed, clock, {
      onChange: (path, type) => {
        this.kafka.changed(path);
        this.recipes.changed(path, type);
        this.terms.changed(path, type);
      },
      onGap: () => {
        this.tree.forget();
        this.recipes.forget();
        void this.terms.forget();
      },
    });
    this.alignment = new Alignment(reading, clock, sources.offsets);
    this.metrics = new Metrics(sources, this.feed, clock, this.signal);
    this.#beatLater();
    this.#lagLater();
    if (this.journal.isKept) this.#readLater();
  }

  /** Aborts when the console closes. */
  get signal(): AbortSignal {
    return this.#closing.signal;
  }

  close(): void {
    this.#closing.abort();
    this.#beat?.cancel();
    this.#lag?.cancel();
    this.#reading?.cancel();
    this.#stale?.cancel();
    this.metrics.close();
    this.live.close();
    this.feed.close();
  }

  session(caller: Caller): SessionView {
    const { sources, access } = this;
    const isKnown = caller.role !== 'nobody';
    return {
      role: caller.role,
      needsToken: access.needsToken,
      csrf: isKnown ? access.changeToken(caller) : null,
      readOnly: !this.#mayWrite(caller),
      readOnlyReason: access.readOnlyReason(caller) ?? this.#readOnly,
      version: sources.version,
      servers: isKnown ? sources.servers : '',
      origin: isKnown ? sources.origin : '',
      context: this.context,
      link: isKnown ? this.live.link : null,
      lastEventId: isKnown ? this.feed.lastId : null,
      features: {
        live: this.live.isLive,
        history: sources.history !== undefined,
        ownServer: sources.ownServer !== undefined,
        shell: sources.run !== undefined,
        demo: sources.demo !== undefined && this.#demo === undefined,
        contexts: this.#hasContexts,
        copy: sources.copy !== undefined,
      },
    };
  }

  /** A place that is kept read-only stays so, whatever the console may do elsewhere. */
  checkWrite(): void {
    if (this.#readOnly !== null) throw new ConsoleError('FORBIDDEN', this.#readOnly);
  }

  #mayWrite({ role }: Caller): boolean {
    return role === 'editor' && this.#readOnly === null;
  }

  async overview(call: CallOptions): Promise<OverviewView> {
    const { client } = this.sources;
    const seen = this.metrics.seen ?? (await this.metrics.look()) ?? nothingSeen;
    // Without a link the servers are shown all the same: that is when one looks at them.
    const isLinked = client.state.name === 'connected';
    const names = isLinked ? await client.children('/', call).catch(orNull) : null;
    return {
      ...seen,
      changes: this.live.recent,
      rootChildren: names?.length ?? null,
      isEmpty: names?.every((name) => name === 'zookeeper') ?? false,
    };
  }

  async history({ path, limit }: { path: string; limit: number }): Promise<HistoryView> {
    const { history } = this.sources;
    if (history === undefined) {
      const why =
        'the transaction logs are with the server; drover log history PATH --data DIR reads them there';
      return { path, entries: null, why, isCut: false };
    }
    return { path, why: null, ...(await history(path, limit)) };
  }

  async auditView(page: { offset: number; limit: number; filter: string }): Promise<AuditView> {
    await this.#readJournal();
    return { ...this.audit.view(page), hasCommandLines: this.journal.isKept };
  }

  stream(asking: Asking & { lastEventId?: string | undefined }): Response {
    if (this.feed.listeners >= limits.streamsMax) {
      throw new ConsoleError('TOO_MANY', `${limits.streamsMax} pages are open already`);
    }
    const address = addressKey(asking.address);
    if (this.feed.listenersFrom(address) >= limits.streamsOfOneMax) {
      const why = `${limits.streamsOfOneMax} pages are open already at this address; close one`;
      throw new ConsoleError('TOO_MANY', why);
    }
    const hello = { run: this.feed.run, link: this.live.link, nowMs: this.#clock.wallMs() };
    return new Response(this.feed.stream(asking.lastEventId, hello, address), {
      headers: {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store',
        'x-accel-buffering': 'no',
      },
    });
  }

  async shell(
    { line, json, cwd }: { line: string; json: boolean; cwd: string },
    { caller, who, call }: { caller: Caller; who: string; call: { signal: AbortSignal } },
  ): Promise<ShellView> {
    const { run } = this.sources;
    if (run === undefined) throw new ConsoleError('UNSUPPORTED', 'there are no commands here');
    const mayWrite = this.#mayWrite(caller);
    const { client } = this.sources;
    const isLinked = mayWrite && client.state.name === 'connected';
    const witness = isLinked ? await ShellWitness.before(client, { line, cwd }, call) : undefined;
    const { writes, ...said } = await run({
      line,
      json,
      cwd,
      readOnly: !mayWrite,
      outputBytesMax: limits.outputBytesMax,
      signal: call.signal,
    });
    if (writes) {
      // The line may name a password (addauth): its first two words say enough.
      const words = line.trim().split(/\s+/, 2);
      const path = words.find((word) => word.startsWith('/')) ?? cwd;
      const nothing = { path, count: 1, before: null, after: null, undo: 'no' } as const;
      const ok = said.code === 0;
      const note = ok ? words[0]! : `${words[0]}: exit code ${said.code}`;
      const { way, ...seen }: Witnessed = (await witness?.after(said.out)) ?? nothing;
      this.audit.add({ action: 'shell', who, ok, note, ...seen }, way);
    }
    return said;
  }

  async expire(session: string, who: string): Promise<Record<string, never>> {
    const { ownServer } = this.sources;
    if (ownServer === undefined) {
      throw new ConsoleError('UNSUPPORTED', 'only a server of our own can end a session');
    }
    const id = BigInt.asIntN(64, BigInt(session));
    if (id === this.sources.client.sessionId) {
      throw new ConsoleError('CONFLICT', 'that is the session of this console');
    }
    const ok = await ownServer.expire(id);
    const nothing = { count: 1, before: null, after: null, undo: 'no' } as const;
    this.audit.add({ action: 'expire', path: hex(id), who, ok, note: null, ...nothing });
    if (!ok) throw new ConsoleError('NOT_FOUND', 'there is no such session');
    return {};
  }

  async demo(who: string): Promise<Record<string, never>> {
    const { demo } = this.sources;
    if (demo === undefined) throw new ConsoleError('UNSUPPORTED', 'there is no demo here');
    this.#demo ??= demo().catch((error: unknown) => {
      this.#demo = undefined; // the next one may have more luck
      throw error;
    });
    await this.#demo;
    const nothing = { count: 1, before: null, after: null, undo: 'no' } as const;
    this.audit.add({ action: 'demo', path: '/', who, ok: true, note: null, ...nothing });
    return {};
  }

  #beatLater(): void {
    this.#beat = this.#clock.after(
      beatMs,
      () => {
        this.feed.send('beat', { nowMs: this.#clock.wallMs() });
        this.#beatLater();
      },
      true,
    );
  }

  /** Other pages than the one that asks show the list too. */
  async #readJournal(): Promise<void> {
    const taken = await this.journal.catchUp();
    if (taken > 0) this.feed.send('views', { views: ['audit'] });
  }

  #kafkaLater(): void {
    this.#stale ??= this.#clock.after(
      scanKeptMs,
      () => {
        this.#stale = undefined;
        this.feed.send('views', { views: ['kafka'] });
      },
      true,
    );
  }

  #readLater(): void {
    this.#reading = this.#clock.after(
      journalMs,
      () => {
        const isHeard = this.feed.listeners > 0;
        // A file that can't be read is said where the audit is asked for.
        const read = isHeard ? this.#readJournal().catch(() => {}) : Promise.resolve();
        void read.then(() => {
          if (!this.signal.aborted) this.#readLater();
        });
      },
      true,
    );
  }

  #lagLater(): void {
    this.#lag = this.#clock.after(
      lagMs,
      () => {
        const isShown = this.feed.listeners > 0 && this.groups.wasAskedSince(3 * lagMs);
        if (isShown && this.groups.knowsEnds) this.feed.send('views', { views: ['groups'] });
        this.#lagLater();
      },
      true,
    );
  }
}
