/**
 * A line of contenders: ephemeral sequential nodes under one path, in the order in which they were made.
 *
 *   <path>/_c_<uuid>-lock-0000000007     the mark finds the node again when the reply to its create was lost
 *
 * In: a rule that says, of a line and a place in it, whom to wait for, or that it is our turn. Out: a
 * `Grant`. Whoever waits watches one or two nodes ahead of it and its own, so that letting go wakes few.
 *
 *   holder   next ──▶ holder   third ──▶ next, holder   fourth ──▶ holder   fifth ──▶ next   …
 *
 * Where one has its turn at a time, each watches the two ahead of it, and has its turn the moment that both
 * are gone: a hand-over waits for no question and answer. Who is further behind watches the third ahead of
 * it alone. When that one is gone it looks at the line, and sets the two watches: a whole turn before they
 * matter, since the holder may let go the moment it has its turn.
 *
 * What always holds: a turn comes only to a node that is in the list and belongs to the client's current
 * session. A list may be older than the truth, and then shows nodes ahead that are gone; it never lacks
 * one, since all that are ahead were made before ours was, and a session never reads older than it wrote.
 * Who gives up leaves no node and no watch.
 *
 * NOT promised: a place through a new session. Who loses its session loses its place, and hears of it.
 */

import {
  type Acl,
  type CallOptions,
  type Client,
  type DataAndStat,
  type DataInput,
  isZkError,
} from '../client/index.ts';
import { childOf, nameOf } from '../protocol/index.ts';
import { unlessAborted, wakefulness } from '../support/index.ts';
import { Grant, type GrantOptions } from './grant.ts';
import { type Watched, watchNode } from './node-watch.ts';
import { NotHeldError } from './not-held-error.ts';
import { withParents } from './parents.ts';
import { whileLinked } from './while-linked.ts';

/**
 * How long an answer is looked for by who was alone in line, before its process goes to sleep: what a
 * server takes that is close and whose disk is fast. To be woken would take half as long again.
 */
const aloneAwakeMs = 0.4;

/** The line in its order, and our index in it. Returns the name to wait for; null when it is our turn. */
export type Rule = (line: readonly string[], at: number) => string | null;

/** One holds it at a time: everyone waits for the one before. */
export const oneAtATime: Rule = (line, at) => (at === 0 ? null : line[at - 1]!);

export interface LineOptions {
  /** What stands between the mark and the number; all these stand in one line. `['lock-']`. */
  readonly prefixes?: readonly string[];
  /** Open to anyone unless said. */
  readonly acl?: readonly Acl[];
}

export interface JoinOptions extends GrantOptions {
  /** One of the line's. The first unless said. */
  readonly prefix?: string;
  readonly data?: DataInput;
  readonly signal?: AbortSignal;
}

export class Line {
  readonly client: Client;
  readonly path: string;
  readonly #prefixes: readonly string[];
  readonly #acl: readonly Acl[] | undefined;
  #isAlone = false;

  constructor(client: Client, path: string, options: LineOptions = {}) {
    this.client = client;
    this.path = path;
    this.#prefixes = options.prefixes ?? ['lock-'];
    this.#acl = options.acl;
  }

  /** Makes our node. Rejects, leaving none behind, when the signal aborts first. */
  async join({ signal, ...options }: JoinOptions = {}): Promise<Place> {
    if (signal === undefined) {
      const place = await this.#make(options);
      return place.grant.isHeld ? place : this.#still(place);
    }
    const unwanted = new AbortController();
    const making = this.#make(options, unwanted.signal);
    try {
      return await this.#still(await unlessAborted(making, signal));
    } catch (error) {
      if (signal.aborted && error === signal.reason) {
        // It may be on its way: then it is waited for, and taken away. Without a link, what has not been
        // sent never is, and what has been is looked for when there is a link again.
        const undone = making.then(
          (place) => place.leave(),
          () => {},
        );
        await whileLinked(this.client, undone);
        unwanted.abort(error);
      }
      throw error;
    }
  }

  /** The session may have ended between the reply and now. */
  async #still(place: Place): Promise<Place> {
    if (place.grant.isHeld) return place;
    await place.leave();
    throw new NotHeldError(place.path, 'sessionOver');
  }

  async #make(options: Omit<JoinOptions, 'signal'>, signal?: AbortSignal): Promise<Place> {
    const { prefix = this.#prefixes[0]!, data, ...grant } = options;
    const path = childOf(this.path, prefix);
    let list: Promise<string[] | null> | undefined;
    this.hurry();
    const node = await withParents(this.client, path, this.#acl, () => {
      const making = this.client.createProtected(path, data, {
        mode: 'ephemeralSequential',
        ...(signal && { signal }),
        ...(this.#acl && { acl: this.#acl }),
      });
      // Asked for in the same breath: it is answered behind the create, which saves a wait.
      list = this.client.children(this.path, signal ? { signal } : {}).then(
        (names) => inOrder(names, this.#prefixes),
        () => null,
      );
      return making;
    });
    // What the list says comes first: whoever is alone has its turn then, and may be done before the watch.
    const place = new Grant(this.client, node, {
      ...grant,
      ...(list && { watchAfter: list }),
      onLeave: () => this.hurry(),
    });
    return new Place(this, node.path, place, list);
  }

  /** Before something is asked: where we are alone its answer is looked for at once. */
  hurry(): void {
    if (this.#isAlone) wakefulness.expect(aloneAwakeMs);
  }

  /** So many stood there just now. Where we are alone, whatever time we take is what the whole line takes. */
  counted(places: number): void {
    this.#isAlone = places === 1;
  }

  /** The number in a name of this line. */
  sequenceOf(name: string): number | undefined {
    return numbered(name, this.#prefixes)?.sequence;
  }

  /** The names in line, first to last. None when there is no such path. */
  async names(options: CallOptions = {}): Promise<string[]> {
    try {
      return inOrder(await this.client.children(this.path, options), this.#prefixes);
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return [];
      throw error;
    }
  }
}

/** So many of those ahead are watched at a time, and their ends are enough to know that it is our turn. */
const foreseenMax = 2;

/** The end of somebody else's place. */
interface Ending {
  isOver: boolean;
  readonly over: Promise<void>;
}

/** Our node in a line, from its making to its end. */
export class Place {
  readonly line: Line;
  readonly path: string;
  readonly name: string;
  /** Ours once `turn` has resolved; before that, its signal tells whether the place is. */
  readonly grant: Grant;
  /** The list that was asked for together with our node. Only the first look needs it. */
  #firstList: Promise<string[] | null> | undefined;
  /** Nodes ahead whose end is waited for, or was seen since the last look at the line. */
  readonly #endings = new Map<string, Ending>();
  /** Watches on nodes ahead, set or about to be. */
  readonly #watches = new Set<Promise<Watched<DataAndStat> | null>>();

  constructor(line: Line, path: string, grant: Grant, firstList?: Promise<string[] | null>) {
    this.line = line;
    this.path = path;
    this.name = nameOf(path);
    this.grant = grant;
    this.#firstList = firstList;
  }

  /** The number that the server gave us. */
  get sequence(): number {
    return this.line.sequenceOf(this.name)!;
  }

  /** Whom the rule says to wait for, by a fresh list; null when it is our turn. Rejects when we have no place. */
  async ahead(rule: Rule, signal?: AbortSignal): Promise<string | null> {
    return rule(...(await this.#look(signal)));
  }

  /** The line as it is, and our index in it. */
  async #look(signal?: AbortSignal): Promise<[line: readonly string[], at: number]> {
    const names = await this.#names(signal);
    this.line.counted(names.length);
    for (const [name, { isOver }] of this.#endings) {
      if (isOver && !names.includes(name)) this.#endings.delete(name);
    }
    this.grant.check(); // the list may have come in another session than the one that owns the node
    const at = names.indexOf(this.name);
    if (at === -1) {
      this.grant.missing();
      throw new NotHeldError(this.path, 'nodeDeleted');
    }
    return [names, at];
  }

  /**
   * Waits until the rule says that it is our turn. Rejects with a `NotHeldError` when the place is lost,
   * or with the signal's reason. Then, and whenever the place is no longer wanted, call `leave`.
   */
  async turn(rule: Rule, signal?: AbortSignal): Promise<Grant> {
    const { grant } = this;
    let [line, at] = await this.#look(signal);
    if (rule(line, at) === null) return this.#granted();
    grant.watch(); // goes out together with what is asked next
    const look = () => this.#unlessOver(this.#look(signal), signal);
    // Where everyone waits for all who are ahead, none of these can come in later. So of the last of
    // them it is known beforehand that our turn follows their end, and nothing has to be asked then.
    const isForeseen = rule === oneAtATime;
    for (;;) {
      const name = rule(line, at);
      if (name === null) return this.#granted();
      const early = isForeseen ? line[at - 1 - foreseenMax] : undefined;
      if (early !== undefined) await this.#ending(early, signal).over;
      const { links } = grant;
      const ending = this.#ending(name, signal);
      if (isForeseen && at > 1) this.#ending(line[at - 2]!, signal);
      if (early !== undefined) {
        // In the same breath: it is answered behind the reads that watch the two ahead.
        [line, at] = await look();
        if (at > foreseenMax) continue; // it was one in the middle that went
        if (rule(line, at) === null) return this.#granted();
      }
      await ending.over;
      if (isForeseen && this.#areOver(line.slice(0, at))) {
        // Who closes the client takes its own holder and waiters away at once: the list tells them apart.
        const { isClosing } = this.line.client;
        if (grant.isWatched && grant.links === links && !isClosing) return this.#granted();
      }
      [line, at] = await look();
    }
  }

  #granted(): Grant {
    this.grant.check();
    return this.grant;
  }

  #areOver(names: readonly string[]): boolean {
    return names.every((name) => this.#endings.get(name)?.isOver);
  }

  /** The end of a node ahead, which is watched once, however often it is asked for. */
  #ending(name: string, signal: AbortSignal | undefined): Ending {
    const known = this.#endings.get(name);
    if (known !== undefined) return known;
    const ending: Ending = {
      isOver: false,
      over: this.#gone(name, signal).then(() => {
        ending.isOver = true;
      }),
    };
    this.#endings.set(name, ending);
    ending.over.catch(() => this.#endings.delete(name)); // the look behind it may fail first, and says why
    return ending;
  }

  /** Resolves when the node is no longer there. Somebody may write to it meanwhile, and ask its owner to let go. */
  async #gone(name: string, signal: AbortSignal | undefined): Promise<void> {
    for (let isThere = true; isThere; ) {
      const watch = watchNode(this.line.client, childOf(this.line.path, name));
      this.#watches.add(watch);
      const watched = await this.#unlessOver(this.#inSession(watch), signal);
      const event = watched && (await this.#unlessOver(watched.changed, signal));
      this.#watches.delete(watch);
      isThere = event?.type === 'dataChanged';
    }
  }

  /** While we wait, the end of our own node or session counts as much as a caller who gave up. */
  #unlessOver<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    const mine = new Promise<T>((resolve, reject) => {
      const stop = this.grant.onEnd(reject);
      const settled = <V>(settle: (value: V) => void) => {
        return (value: V) => {
          stop();
          settle(value);
        };
      };
      promise.then(settled(resolve), settled(reject));
    });
    return signal ? unlessAborted(mine, signal) : mine;
  }

  /** A list that has our node is no older than it, and so has all that are ahead of it. */
  #names(signal?: AbortSignal): Promise<string[]> {
    const first = this.#firstList;
    this.#firstList = undefined;
    const fresh = () => this.#inSession(this.line.names(signal ? { signal } : {}));
    if (first === undefined) return fresh();
    const known = signal ? unlessAborted(first, signal) : first;
    return known.then((names) => (names?.includes(this.name) ? names : fresh()));
  }

  /** A read that fails because the session is over means that the place is lost with it. */
  async #inSession<T>(read: Promise<T>): Promise<T> {
    try {
      return await read;
    } catch (error) {
      if (!isZkError(error, 'SESSION_EXPIRED', 'AUTH_FAILED')) throw error;
      throw new NotHeldError(this.path, 'sessionOver', { cause: error });
    }
  }

  /** Takes the watches on those ahead away, then the node. Gone already is fine. */
  async leave(): Promise<void> {
    const watches = [...this.#watches];
    this.#watches.clear();
    // Whoever comes after us watches those same nodes next: our watches must be gone before our node is.
    const unwatched = watches.map(async (watch) => {
      const watched = await watch.catch(() => null); // what could not be read is not watched
      await watched?.stop();
    });
    if (unwatched.length > 0) await Promise.all(unwatched);
    await this.grant.release();
  }
}

/** The number behind the last of the prefixes in a name, and which prefix it is. */
function numbered(name: string, prefixes: readonly string[]) {
  for (let kind = 0; kind < prefixes.length; kind += 1) {
    const prefix = prefixes[kind]!;
    const at = name.lastIndexOf(prefix);
    const sequence = at === -1 ? Number.NaN : numberFrom(name, at + prefix.length);
    if (!Number.isNaN(sequence)) return { name, kind, sequence };
  }
  return undefined; // not a contender, whatever it is
}

const digitsMax = 10;
const [zero, nine] = [0x30, 0x39];

/**
 * What Java's %010d has written from there to the end; NaN for anything else. Past 2^31-1 the server's
 * counter goes on below zero, with the sign among the ten. (Lists are long, and each look reads one: no
 * pattern, no string for each name.)
 */
function numberFrom(name: string, from: number): number {
  const isNegative = name[from] === '-';
  const start = isNegative ? from + 1 : from;
  const digits = name.length - start;
  if (digits !== digitsMax && !(isNegative && digits === digitsMax - 1)) return Number.NaN;
  let number = 0;
  for (let at = start; at < name.length; at += 1) {
    const digit = name.charCodeAt(at);
    if (digit < zero || digit > nine) return Number.NaN;
    number = number * 10 + digit - zero;
  }
  return isNegative ? -number : number;
}

/** Those that have one of the prefixes and a number behind it, by number, then as the prefixes stand. */
export function inOrder(names: readonly string[], prefixes: readonly string[]): string[] {
  const found: NonNullable<ReturnType<typeof numbered>>[] = [];
  for (const name of names) {
    const one = numbered(name, prefixes);
    if (one !== undefined) found.push(one);
  }
  // Around 2^31 the number that is shortly ahead, modulo 2^32, is the later one.
  found.sort((a, b) => (a.sequence - b.sequence) | 0 || a.kind - b.kind);
  return found.map(({ name }) => name);
}
