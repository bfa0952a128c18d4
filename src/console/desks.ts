/**
 * The places that the console looks at: the one it was started for, and, where it may, the contexts of the
 * command line, each with a session, a stream and an audit of its own.
 *
 * In: the name that a request carries. Out: the desk of that place, opened when first asked for, and anew
 * when it was saved anew. A place that nobody looks at and nothing was changed in is closed after a while;
 * there are at most `openMax`. A context that is kept read-only stays so here, whatever the console itself
 * may do.
 */

import type { Clock, Timer } from '../support/index.ts';
import type { Access } from './access.ts';
import { ConsoleError } from './console-error.ts';
import { Desk } from './desk.ts';
import { RequestBudget, type RequestLimits, requestLimits } from './request-budget.ts';
import type { ConsoleSources, ContextSources } from './sources.ts';
import type { AuditEntry, ContextsView, ContextView } from './views.ts';

/** Places that are open at once, besides the first. */
const openMax = 8;
/** A place that was not asked for since, and to which no page listens, is closed. */
const idleMs = 10 * 60_000;
const lookEveryMs = 60_000;

export interface DesksOptions {
  readonly sources: ConsoleSources;
  readonly contexts?: ContextSources | undefined;
  readonly access: Access;
  readonly clock: Clock;
  readonly requestLimits?: RequestLimits | undefined;
  readonly onAudit: (entry: AuditEntry, context: string | null) => void;
}

interface Open {
  readonly desk: Desk;
  close(): Promise<void>;
}

interface Place {
  /** As it was saved when it was opened. */
  readonly saved: ContextView;
  readonly open: Promise<Open>;
  /** Once it is. */
  desk: Desk | undefined;
  usedMs: number;
}

export class Desks {
  readonly access: Access;
  readonly #options: DesksOptions;
  readonly #own: Desk;
  readonly #places = new Map<string, Place>();
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(options: DesksOptions) {
    this.#options = options;
    this.access = options.access;
    this.#own = this.#deskOf(options.sources, null, null);
  }

  /** For one request. */
  budget(): RequestBudget {
    const { requestLimits: limits = requestLimits, clock } = this.#options;
    return new RequestBudget(limits, clock);
  }

  /** Undefined: where the console was started for. */
  async of(name: string | undefined): Promise<Desk> {
    if (name === undefined || name === '') return this.#own;
    const { contexts, clock } = this.#options;
    if (contexts === undefined || this.#isClosed) {
      throw new ConsoleError('NOT_FOUND', 'this console looks at no other contexts');
    }
    const saved = (await contexts.list()).find((one) => one.name === name);
    let place = this.#places.get(name);
    // Somebody has saved it anew since, perhaps to keep it from being written to.
    if (place !== undefined && (saved === undefined || !isSame(saved, place.saved))) {
      await this.#leave(name);
      place = this.#places.get(name);
    }
    // A name that nobody saved takes no room from one that is open.
    if (saved === undefined) throw new ConsoleError('NOT_FOUND', 'there is no such context');
    if (place === undefined) {
      await this.#makeRoom();
      // Nobody would close it any more.
      if (this.#isClosed) throw new ConsoleError('NO_LINK', 'the console is closing');
      place = this.#places.get(name) ?? this.#opened(name, saved, contexts);
    }
    place.usedMs = clock.nowMs();
    return (await place.open).desk;
  }

  async contexts(): Promise<ContextsView> {
    const { contexts, sources } = this.#options;
    const { servers, origin } = sources;
    const own = { name: null, servers, origin, readOnly: false };
    const saved = (await contexts?.list()) ?? [];
    // It may be one of them that the console was started for.
    const others = saved.filter((one) => one.origin !== origin);
    const why =
      contexts === undefined
        ? 'this console was started for one place; drover console --contexts all offers the others'
        : saved.length === 0
          ? 'no context is saved; drover context add NAME host:2181 saves one'
          : null;
    return { contexts: [own, ...others], why };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#own.close();
    await Promise.all([...this.#places.keys()].map((name) => this.#leave(name)));
  }

  #opened(name: string, saved: ContextView, contexts: ContextSources): Place {
    const place: Place = { saved, open: this.#open(name, contexts), desk: undefined, usedMs: 0 };
    this.#places.set(name, place);
    place.open.then(
      ({ desk }) => {
        place.desk = desk;
      },
      () => {
        if (this.#places.get(name) === place) this.#places.delete(name); // the next may have more luck
      },
    );
    this.#lookLater();
    return place;
  }

  async #open(name: string, contexts: ContextSources): Promise<Open> {
    const opened = await contexts.open(name);
    const desk = this.#deskOf(opened.sources, name, opened.readOnly);
    return {
      desk,
      async close() {
        desk.close();
        await opened.close();
      },
    };
  }

  #deskOf(sources: ConsoleSources, context: string | null, readOnly: string | null): Desk {
    const { access, clock, onAudit, contexts } = this.#options;
    return new Desk({
      sources,
      access,
      clock,
      context,
      readOnly,
      hasContexts: contexts !== undefined,
      onAudit: (entry) => onAudit(entry, context),
    });
  }

  async #makeRoom(): Promise<void> {
    if (this.#places.size < openMax) return;
    const idle = [...this.#places].filter(([, { desk }]) => isUnused(desk));
    const [oldest] = idle.sort(([, a], [, b]) => a.usedMs - b.usedMs);
    if (oldest === undefined) {
      throw new ConsoleError('TOO_MANY', `${openMax} contexts are open already; close a page`);
    }
    await this.#leave(oldest[0]);
  }

  async #leave(name: string): Promise<void> {
    const place = this.#places.get(name);
    this.#places.delete(name);
    const open = await place?.open.catch(() => undefined); // whoever asked for it was told
    await open?.close();
  }

  #lookLater(): void {
    this.#timer ??= this.#options.clock.after(
      lookEveryMs,
      () => {
        this.#timer = undefined;
        const nowMs = this.#options.clock.nowMs();
        for (const [name, { desk, usedMs }] of this.#places) {
          if (isUnused(desk) && nowMs - usedMs >= idleMs) void this.#leave(name);
        }
        if (this.#places.size > 0 && !this.#isClosed) this.#lookLater();
      },
      true,
    );
  }
}

function isSame(a: ContextView, b: ContextView): boolean {
  return a.servers === b.servers && a.readOnly === b.readOnly;
}

/** What was changed through it could not be taken back any more, nor looked up: that keeps it open. */
function isUnused(desk: Desk | undefined): boolean {
  if (desk === undefined || desk.feed.listeners > 0) return false;
  return !desk.audit.hasOwn;
}
