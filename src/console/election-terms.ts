/**
 * The terms of elections: who led when, and by which epoch, as far as the console saw it or, where the
 * transaction logs are ours to read, as far as they reach back.
 *
 * In: changes of the tree as the watch tells them, and elections as the Recipes page finds them. Out: terms,
 * newest first. A line is read once; after that each candidate that comes or goes is known by its event, and
 * only those in front are asked for by name. After a gap the lines are compared: terms that began and ended
 * in it are not known, and the view says since when somebody looked.
 */

import { type Client, isZkError } from '../client/index.ts';
import { childOf, nameOf, parentOf } from '../protocol/index.ts';
import { hex } from './node-text.ts';
import { patterns } from './recipe-kinds.ts';
import type { ConsoleSources } from './sources.ts';
import { type BookedTerm, type Candidate, TermBook } from './term-book.ts';
import type { ChangeView, TermsView, TermView } from './views.ts';

/** Elections that are followed; the one that was asked for longest ago goes first. */
const followedMax = 200;
const labelBytes = 120;
/** Of the front of a line. */
const learnedMax = 20;
const candidateName = patterns.latch;

interface Followed {
  /** Undefined until its line was read. */
  book: TermBook | undefined;
  /** What came while it was read. */
  readonly early: ((book: TermBook) => void)[];
  sinceMs: number;
}

export class ElectionTerms {
  readonly #client: Client;
  readonly #lineHistory: ConsoleSources['lineHistory'];
  readonly #wallMs: () => number;
  readonly #followed = new Map<string, Followed>();

  constructor(
    client: Client,
    lineHistory?: ConsoleSources['lineHistory'],
    wallMs: () => number = Date.now,
  ) {
    this.#client = client;
    this.#lineHistory = lineHistory;
    this.#wallMs = wallMs;
  }

  /** What the live tree tells. */
  changed(path: string, type: ChangeView['type']): void {
    if (type !== 'created' && type !== 'deleted') return;
    const name = nameOf(path);
    const election = parentOf(path);
    if (election === null || !candidateName.test(name)) return;
    const atMs = this.#wallMs();
    const followed = this.#followed.get(election);
    if (followed === undefined) {
      if (type === 'created') void this.#follow(election);
      return;
    }
    const step = (book: TermBook) =>
      type === 'created' ? book.joined(name, atMs) : book.left(name, atMs);
    if (followed.book === undefined) followed.early.push(step);
    else void this.#stepped(election, followed.book, step);
  }

  /** Changes may have gone by unseen. */
  async forget(): Promise<void> {
    await Promise.all(
      [...this.#followed].map(async ([election, { book }]) => {
        const names = book && (await this.#names(election, nobodyThere));
        if (!names) return;
        const atMs = this.#wallMs();
        await this.#stepped(election, book, (it) => it.compare(names, atMs));
      }),
    );
  }

  /** The newest terms that were seen of an election, newest first; from now on it is followed. */
  async seen(election: string, limit: number): Promise<TermView[]> {
    const { book } = await this.#follow(election);
    return (book?.terms ?? []).slice(-limit).reverse().map(viewOf);
  }

  async view(election: string): Promise<TermsView> {
    const { book, sinceMs } = await this.#follow(election);
    const logged = await this.#logged(election);
    const from = logged === null ? 'seen' : 'logs';
    const terms = (logged ?? book)?.terms ?? [];
    const isCut = ((logged ?? book)?.dropped ?? 0) > 0;
    const seenSinceMs = logged === null ? sinceMs : null;
    return { path: election, terms: terms.toReversed().map(viewOf), from, seenSinceMs, isCut };
  }

  async #logged(election: string): Promise<TermBook | null> {
    if (this.#lineHistory === undefined) return null;
    let book: TermBook | null = null;
    await this.#lineHistory(election, (change) => {
      if (change.kind === 'start') {
        book = new TermBook(change.line.filter(([name]) => candidateName.test(name)));
      } else if (!candidateName.test(change.name)) return;
      else if (change.kind === 'left') book?.left(change.name, change.atMs);
      else book?.joined(change.name, change.atMs, change.candidate);
    });
    return book;
  }

  async #follow(election: string): Promise<Followed> {
    const known = this.#followed.get(election);
    if (known !== undefined) {
      this.#followed.delete(election);
      this.#followed.set(election, known);
      return known;
    }
    const followed: Followed = { book: undefined, early: [], sinceMs: this.#wallMs() };
    this.#followed.set(election, followed);
    const [oldest] = this.#followed.keys();
    if (this.#followed.size > followedMax && oldest !== undefined) this.#followed.delete(oldest);
    const names = await this.#names(election);
    if (names === null) {
      this.#followed.delete(election);
      return followed;
    }
    const book = new TermBook([...names].map((name) => [name, unknown]));
    followed.book = book;
    await this.#stepped(election, book, (it) => {
      for (const step of followed.early.splice(0)) step(it);
    });
    return followed;
  }

  async #stepped(election: string, book: TermBook, step: (book: TermBook) => void): Promise<void> {
    step(book);
    // Asked for while they wait: a term may be shorter than a question and its answer.
    const names = book.strangers(learnedMax);
    await Promise.all(names.map((name) => this.#learn(election, book, name)));
  }

  /** Who it is that leads; it may be gone again already, and then it stays unknown. */
  async #learn(election: string, book: TermBook, name: string): Promise<void> {
    const node = await this.#client.get(childOf(election, name)).catch(notNow);
    if (node === null) return;
    const { ephemeralOwner, czxid } = node.stat;
    book.known(name, {
      id: node.data?.subarray(0, labelBytes).toString('utf8') ?? null,
      session: ephemeralOwner === 0n ? null : hex(ephemeralOwner),
      epoch: String(czxid),
    });
  }

  /** Null: not known now; where the election is not there, `gone`. */
  async #names(
    election: string,
    gone: readonly string[] | null = null,
  ): Promise<Set<string> | null> {
    const names = await this.#client.children(election).catch((error: unknown) => {
      return isZkError(error, 'NO_NODE') ? gone : notNow(error);
    });
    return names && new Set(names.filter((name) => candidateName.test(name)));
  }
}

const nobodyThere: readonly string[] = [];
const unknown: Candidate = { id: null, session: null, epoch: null };

function viewOf({ name, id, session, epoch, sinceMs, untilMs }: BookedTerm): TermView {
  return { name, id, session, epoch, sinceMs, untilMs };
}

/** It is gone, or the link is: the next event or look comes here again. */
function notNow(error: unknown): null {
  if (isZkError(error)) return null;
  throw error;
}
