/**
 * What changes in the tree, told as it happens: one recursive watch on the root, and no look at the tree.
 *
 * In: events of the console's session. Out: `nodes` events in small batches, and `views` for pages that are
 * made of many nodes. A watch tells nothing of what happens while the link is away, and a burst is too
 * much for a page: both are told as `resync`, and pages ask again for what they show.
 * Servers before 3.6 have no such watch: then `isLive` stays false, and pages say so.
 */

import { type Client, isZkError, type SessionState, type WatchEvent } from '../client/index.ts';
import { type Clock, systemClock, type Timer } from '../support/index.ts';
import { type LiveView, limits } from './api.ts';
import type { Feed } from './feed.ts';
import { hex } from './node-text.ts';
import type { ChangeView, LinkView } from './views.ts';

const batchMs = 100;
const viewsMs = 1_000;
const recentMax = 100;
/** Paths may be long, and a batch has many. */
const batchCharsMax = 1024 * 1024;
const recentCharsMax = 4 * 1024;

// biome-ignore format: a table is read down its columns
const viewsByPath: readonly (readonly [RegExp, LiveView])[] = [
  [/^\/(brokers|controller|controller_epoch|admin|config|isr_change_notification|feature)(\/|$)/, 'kafka'],
  [/^\/consumers(\/|$)/,                                                                          'groups'],
  [/^\/align(\/|$)/,                                                                              'alignment'],
];
/** Names that recipes give: any of them may be a place in a line. */
const recipeName =
  /(-(lock|latch|lease|leases|leader|candidate)-?|__(READ|WRIT)__|queue-|qn-|taker-|latch-|lock-)\d*|\/(c-)?i-[0-9a-f]{32}-|\/(ready|barrier)$/;

/** Who is told before any page is. */
export interface LiveListeners {
  readonly onChange?: (path: string, type: ChangeView['type']) => void;
  /** From now on, or until now, changes went by unseen. */
  readonly onGap?: () => void;
}

export class LiveTree {
  readonly #client: Client;
  readonly #feed: Feed;
  readonly #clock: Clock;
  readonly #onChange: NonNullable<LiveListeners['onChange']>;
  readonly #onGap: NonNullable<LiveListeners['onGap']>;
  readonly #recent: ChangeView[] = [];
  readonly #heard = (event: WatchEvent) => this.#event(event);
  readonly #stateListener = (state: SessionState, before: SessionState) =>
    this.#state(state, before);
  #batch: ChangeView[] = [];
  #batchChars = 0;
  #isOverflow = false;
  #views = new Set<LiveView>();
  #timer: Timer | undefined;
  #viewsTimer: Timer | undefined;
  #isLive = false;
  #isClosed = false;
  #link: LinkView;

  constructor(
    client: Client,
    feed: Feed,
    clock: Clock = systemClock,
    { onChange = () => {}, onGap = () => {} }: LiveListeners = {},
  ) {
    this.#client = client;
    this.#onChange = onChange;
    this.#onGap = onGap;
    this.#feed = feed;
    this.#clock = clock;
    this.#link = this.#linkView(client.state);
    client.on('state', this.#stateListener);
    if (client.state.name === 'connected') void this.#again();
  }

  get isLive(): boolean {
    return this.#isLive;
  }

  get link(): LinkView {
    return this.#link;
  }

  /** Newest first. */
  get recent(): readonly ChangeView[] {
    return [...this.#recent].reverse();
  }

  close(): void {
    this.#isClosed = true;
    this.#client.off('state', this.#stateListener);
    this.#timer?.cancel();
    this.#viewsTimer?.cancel();
    if (!this.#isLive) return;
    this.#client.removeWatches('/', { listener: this.#heard, timeoutMs: 2_000 }).catch(() => {}); // the session goes soon anyway, and the watch with it
  }

  #state(state: SessionState, before: SessionState): void {
    this.#onGap();
    this.#link = this.#linkView(state, this.#link);
    this.#feed.send('link', this.#link);
    if (state.name !== 'connected' || before.name === 'connected') return;
    // The watch of a session that lives on is set again by the client; a new session has none.
    if (before.name !== 'suspended') this.#isLive = false;
    void this.#again();
  }

  /**
   * Pages ask again only once the watch is set: what changes before that is in what they get, what
   * changes after it they are told. Requests are answered in order, and the client sets its watches first.
   */
  async #again(): Promise<void> {
    if (this.#isLive) await this.#client.exists('/').catch(notNow);
    else await this.#arm();
    if (!this.#isClosed) this.#resync('reconnected');
  }

  async #arm(): Promise<void> {
    await this.#client.addWatch('/', 'persistentRecursive', this.#heard).then(() => {
      this.#isLive = true;
    }, notNow);
  }

  #event({ type, path, zxid }: WatchEvent): void {
    if (this.#isClosed) return;
    if (
      type !== 'created' &&
      type !== 'deleted' &&
      type !== 'dataChanged' &&
      type !== 'childrenChanged'
    ) {
      return;
    }
    const change = {
      type,
      path,
      zxid: zxid === null || zxid === undefined ? null : hex(zxid),
      atMs: this.#clock.wallMs(),
    };
    if (path.length <= recentCharsMax) this.#recent.push(change);
    if (this.#recent.length > recentMax) this.#recent.shift();
    this.#batchChars += path.length;
    const hasRoom =
      this.#batch.length < limits.changesPerEvent && this.#batchChars <= batchCharsMax;
    if (hasRoom) this.#batch.push(change);
    else this.#isOverflow = true;
    this.#onChange(path, type);
    this.#touch(path);
    this.#timer ??= this.#clock.after(batchMs, () => this.#flush());
  }

  #touch(path: string): void {
    for (const [pattern, view] of viewsByPath) if (pattern.test(path)) this.#views.add(view);
    if (recipeName.test(path)) this.#views.add('recipes');
    if (this.#views.size === 0) return;
    this.#viewsTimer ??= this.#clock.after(viewsMs, () => {
      this.#viewsTimer = undefined;
      const views = [...this.#views];
      this.#views = new Set();
      this.#feed.send('views', { views });
    });
  }

  #flush(): void {
    this.#timer = undefined;
    const changes = this.#batch;
    this.#batch = [];
    this.#batchChars = 0;
    if (this.#isOverflow) {
      this.#isOverflow = false;
      this.#resync('overflow');
    } else if (changes.length > 0) {
      this.#feed.send('nodes', { changes, zxid: hex(this.#client.lastZxid) });
    }
  }

  #resync(why: 'reconnected' | 'overflow'): void {
    this.#feed.send('resync', { why });
  }

  #linkView({ name }: SessionState, before?: LinkView): LinkView {
    const { server, sessionId } = this.#client;
    // A link that is away stays away when its session ends: nothing was heard in between.
    const wasAway = before !== undefined && before.state !== 'connected' && name !== 'connected';
    return {
      state: name,
      server: server ?? null,
      session: sessionId === undefined ? null : hex(sessionId),
      sinceMs: wasAway ? before.sinceMs : this.#clock.wallMs(),
    };
  }
}

/** Too old a server, or the link is gone again, and the next one brings us here once more. */
function notNow(error: unknown): void {
  if (!isZkError(error)) throw error;
}
