/**
 * Everything that routes work with, in one place, made once and closed once; and the routes that are too
 * small for a room of their own.
 */

import type { CallOptions } from '../client/index.ts';
import type { Clock } from '../support/index.ts';
import type { Access, Asking, Caller } from './access.ts';
import { Alignment } from './alignment.ts';
import { limits } from './api.ts';
import { AuditLog } from './audit.ts';
import { Changes } from './changes.ts';
import { Clients } from './clients.ts';
import { ConsoleError } from './console-error.ts';
import { Controls } from './controls.ts';
import { Feed } from './feed.ts';
import { Groups } from './groups.ts';
import { Kafka } from './kafka.ts';
import { LiveTree } from './live.ts';
import { Metrics } from './metrics.ts';
import { hex } from './node-text.ts';
import { Recipes } from './recipes.ts';
import type { ConsoleSources, ServersSeen } from './sources.ts';
import { orNull, TreeReader } from './tree.ts';
import type { AuditEntry, HistoryView, OverviewView, SessionView, ShellView } from './views.ts';

const beatMs = 15_000;
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
}

export class Desk {
  readonly sources: ConsoleSources;
  readonly access: Access;
  readonly feed: Feed;
  readonly live: LiveTree;
  readonly tree: TreeReader;
  readonly audit: AuditLog;
  readonly changes: Changes;
  readonly controls: Controls;
  readonly clients: Clients;
  readonly recipes: Recipes;
  readonly kafka: Kafka;
  readonly groups: Groups;
  readonly alignment: Alignment;
  readonly metrics: Metrics;
  readonly #clock: Clock;
  readonly #closing = new AbortController();
  #beat: { cancel(): void } | undefined;
  #demo: Promise<void> | undefined;

  constructor({ sources, access, clock, onAudit }: DeskOptions) {
    const { client } = sources;
    this.sources = sources;
    this.access = access;
    this.#clock = clock;
    this.feed = new Feed();
    this.live = new LiveTree(client, this.feed, clock);
    this.tree = new TreeReader(client);
    this.audit = new AuditLog((entry) => {
      this.feed.send('audit', entry);
      onAudit(entry);
    });
    this.changes = new Changes(client, this.audit);
    this.controls = new Controls(client, this.audit, sources.offsets);
    this.clients = new Clients(sources);
    this.recipes = new Recipes(client);
    this.kafka = new Kafka(client);
    this.groups = new Groups(client, sources.offsets, clock);
    this.alignment = new Alignment(client, clock);
    this.metrics = new Metrics(sources, this.feed, clock, this.signal);
    this.#beatLater();
  }

  /** Aborts when the console closes. */
  get signal(): AbortSignal {
    return this.#closing.signal;
  }

  close(): void {
    this.#closing.abort();
    this.#beat?.cancel();
    this.metrics.close();
    this.live.close();
  }

  session(caller: Caller): SessionView {
    const { sources, access } = this;
    const isKnown = caller.role !== 'nobody';
    return {
      role: caller.role,
      needsToken: access.needsToken,
      csrf: isKnown ? access.changeToken(caller) : null,
      readOnly: caller.role !== 'editor',
      readOnlyReason: access.readOnlyReason(caller),
      version: sources.version,
      servers: isKnown ? sources.servers : '',
      origin: isKnown ? sources.origin : '',
      link: isKnown ? this.live.link : null,
      features: {
        live: this.live.isLive,
        history: sources.history !== undefined,
        ownServer: sources.ownServer !== undefined,
        shell: sources.run !== undefined,
        demo: sources.demo !== undefined && this.#demo === undefined,
      },
    };
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

  stream(asking: Asking & { lastEventId?: string | undefined }): Response {
    if (this.feed.listeners >= limits.streamsMax) {
      throw new ConsoleError('TOO_MANY', `${limits.streamsMax} pages are open already`);
    }
    const hello = { run: this.feed.run, link: this.live.link, nowMs: this.#clock.wallMs() };
    return new Response(this.feed.stream(asking.lastEventId, hello), {
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
    const { writes, ...said } = await run({
      line,
      json,
      cwd,
      readOnly: caller.role !== 'editor',
      outputBytesMax: limits.outputBytesMax,
      signal: call.signal,
    });
    if (writes) {
      // The line may name a password (addauth): its first two words say enough.
      const words = line.trim().split(/\s+/, 2);
      const path = words.find((word) => word.startsWith('/')) ?? cwd;
      const nothing = { count: 1, before: null, after: null, undo: 'no' } as const;
      const note = said.code === 0 ? words[0]! : `${words[0]}: exit code ${said.code}`;
      this.audit.add({ action: 'shell', path, who, ok: said.code === 0, note, ...nothing });
    }
    return said;
  }

  expire(session: string, who: string): Record<string, never> {
    const { ownServer } = this.sources;
    if (ownServer === undefined) {
      throw new ConsoleError('UNSUPPORTED', 'only a server of our own can end a session');
    }
    const id = BigInt.asIntN(64, BigInt(session));
    if (id === this.sources.client.sessionId) {
      throw new ConsoleError('CONFLICT', 'that is the session of this console');
    }
    const ok = ownServer.expire(id);
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
}
