/**
 * What a leader keeps of its group: the limit, the plan, the cuts, and how far callbacks have ended.
 *
 * In: decisions. Out: one transaction each, which checks the term and the version of the limit, so that
 * nothing is written by whoever leads no more. What is stored is known from `read` on, and again after
 * every write; after a write that failed it is to be read again.
 */

import type { MultiOp } from '../client/index.ts';
import { ensurePath } from '../kafka/index.ts';
import type { Term } from '../recipes/index.ts';
import { cutsKept, deleteCut, planCut, readCut, writeParts } from './cuts.ts';
import type { Decision } from './group-clock.ts';
import {
  type AlignPaths,
  formatCalled,
  formatLimit,
  formatPlan,
  parseCalled,
  parseLimit,
  parseRule,
  type StoredCut,
  type StoredLimit,
} from './layout.ts';
import { childrenOf, readNode } from './read-node.ts';
import type { Rule } from './rule.ts';
import type { AlignClient } from './session.ts';

export type Topics = ReadonlyMap<string, readonly string[]>;

interface Known {
  readonly stored: StoredLimit;
  readonly version: number;
  readonly mzxid: bigint;
}

export class LimitStore {
  readonly #client: AlignClient;
  readonly #term: Term;
  readonly #paths: AlignPaths;
  #known!: Known;
  /** The cuts that lie in storage, oldest first. `isPlain`: in one node, made by us. */
  #cuts: { readonly name: string; readonly isPlain: boolean }[] = [];
  /** Those that are not needed any more, and still there. */
  readonly #old: string[] = [];
  #hasCalled = false;

  constructor(client: AlignClient, term: Term, paths: AlignPaths) {
    this.#client = client;
    this.#term = term;
    this.#paths = paths;
  }

  get stored(): StoredLimit {
    return this.#known.stored;
  }

  /** When the limit was last written. */
  get mzxid(): bigint {
    return this.#known.mzxid;
  }

  get isRead(): boolean {
    return this.#known !== undefined;
  }

  /** The rule that is stored, or the one given where none is. */
  async read(otherwise: Rule): Promise<Rule> {
    const found = await readNode(this.#client, this.#paths.limit, parseLimit);
    const config = await readNode(this.#client, this.#paths.config, parseRule);
    const rule = config?.value ?? otherwise;
    this.#known = found
      ? { stored: found.value, version: found.version, mzxid: found.mzxid }
      : { stored: blank(rule), version: -1, mzxid: 0n };
    const names = (await childrenOf(this.#client, this.#paths.cuts)) ?? [];
    const end = this.stored.cut?.end ?? -1;
    // Of a leader that lost its term half way there may be parts that count for nothing.
    this.#cuts = names
      .filter((name) => endOf(name) <= end)
      .sort((a, b) => endOf(a) - endOf(b))
      .map((name) => ({ name, isPlain: false }));
    return rule;
  }

  async lastCut(): Promise<StoredCut | null> {
    const { cut } = this.stored;
    return cut && readCut(this.#client, this.#paths, cut);
  }

  /** The cuts that lie in storage and end after this, oldest first. */
  async cutsAfter(afterMs: number): Promise<StoredCut[]> {
    const { cut } = this.stored;
    const found: StoredCut[] = [];
    for (const { name } of this.#cuts) {
      const end = endOf(name);
      if (end <= afterMs) continue;
      const known = cut?.node === name ? cut.parts : undefined;
      const parts = known ?? ((await childrenOf(this.#client, this.#paths.cut(name))) ?? []).length;
      const pointer = { node: name, parts, end, start: null };
      const one = await readCut(this.#client, this.#paths, pointer);
      if (one !== null) found.push(one);
    }
    return found;
  }

  /** From here on a leader of before fails, should it still have a write on its way. */
  async claim(rule: Rule, topics: Topics): Promise<void> {
    const { epoch } = this.#term;
    await ensurePath(this.#client, this.#paths.plan);
    await this.#write({ ...this.stored, epoch, rule, isFinished: false }, [this.#planOp(topics)]);
  }

  async writePlan(topics: Topics): Promise<void> {
    await this.#term.guard([this.#planOp(topics)]);
  }

  #planOp(topics: Topics) {
    const data = formatPlan(this.#term.epoch, topics);
    return { op: 'set', path: this.#paths.plan, data } as const;
  }

  /** Moves the limit, and makes the cut where there is one: which is handed back as it was stored. */
  async move(decision: Decision, rule: Rule, movedAtMs: number): Promise<StoredCut | null> {
    const { epoch } = this.#term;
    const { limitMs, cut, isFinished } = decision;
    const start = this.stored.cut?.end ?? null;
    const made = cut && planCut(this.#paths, { cut, start, epoch });
    if (made) await writeParts(this.#client, this.#paths, made);
    const old = made ? this.#cuts.slice(0, Math.max(0, this.#cuts.length + 1 - cutsKept)) : [];
    const drops = old
      .filter(({ isPlain }) => isPlain)
      .map(({ name }) => ({ op: 'delete', path: this.#paths.cut(name) }) as const);
    const pointer = made?.pointer ?? this.stored.cut;
    await this.#write({ epoch, limitMs, rule, cut: pointer, isFinished, movedAtMs }, [
      ...(made?.ops ?? []),
      ...drops,
    ]);
    if (!cut || !made) return null;
    const { node, parts } = made.pointer;
    this.#old.push(...old.filter(({ isPlain }) => !isPlain).map(({ name }) => name));
    this.#cuts = [...this.#cuts.slice(old.length), { name: node, isPlain: parts === 0 }];
    return { ...cut, epoch, start };
  }

  /** Takes away what lay in several nodes, or was made by somebody before us: no transaction does that. */
  async sweep(): Promise<void> {
    for (const name of [...this.#old]) {
      await deleteCut(this.#client, this.#paths.cut(name));
      this.#old.shift();
    }
  }

  async #write(stored: StoredLimit, more: readonly MultiOp[]): Promise<void> {
    const path = this.#paths.limit;
    const data = formatLimit(stored);
    const { version } = this.#known;
    if (version === -1) {
      const [made] = await this.#term.guard([{ op: 'create', path, data }, ...more]);
      this.#known = { stored, version: 0, mzxid: made.stat?.mzxid ?? 0n };
    } else {
      const [stat] = await this.#term.guard([{ op: 'set', path, data, version }, ...more]);
      this.#known = { stored, version: stat.version, mzxid: stat.mzxid };
    }
  }

  /** The last boundary whose callback has ended. -1: none. */
  async called(): Promise<number> {
    const called = (await readNode(this.#client, this.#paths.called, parseCalled))?.value;
    this.#hasCalled = called !== undefined;
    return called ?? -1;
  }

  async writeCalled(end: number): Promise<void> {
    const path = this.#paths.called;
    const data = formatCalled(this.#term.epoch, end);
    if (!this.#hasCalled) await ensurePath(this.#client, path);
    this.#hasCalled = true;
    await this.#term.guard([{ op: 'set', path, data }]);
  }
}

const endOf = (name: string) => Number(name.slice(0, name.lastIndexOf('-')));

function blank(rule: Rule): StoredLimit {
  return { epoch: 0n, limitMs: null, rule, cut: null, isFinished: false, movedAtMs: 0 };
}
