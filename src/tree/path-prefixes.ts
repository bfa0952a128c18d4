/**
 * Items by path, found for every path below: which recursive watches, and which quota, does a change concern?
 *
 * A tree of names. A stretch without branch or item is one step, so that there are at most two steps for each
 * path however deep it is, and a search takes as long as its path is, whatever stands in here.
 *
 *   /a/b/c and /a/b/d/e   ──▶   a/b ─┬─ c
 *                                    └─ d/e
 */

import { Buffer } from 'node:buffer';
import { TextMap } from '../support/index.ts';

const slash = 0x2f;

interface Step<T> {
  /** Names with slashes between them; the root's is empty. */
  label: string;
  above: Step<T> | undefined;
  /** By the first name of their labels. */
  below: TextMap<Step<T>> | undefined;
  items: Set<T> | undefined;
}

export class PathPrefixes<T> {
  readonly #root: Step<T> = { label: '', above: undefined, below: undefined, items: undefined };

  get isEmpty(): boolean {
    return this.#root.items === undefined && this.#root.below === undefined;
  }

  add(path: string, item: T): void {
    if (!isNodePath(path)) return;
    const step = this.#stepFor(path);
    step.items ??= new Set();
    step.items.add(item);
  }

  delete(path: string, item: T): void {
    if (!isNodePath(path)) return;
    const step = this.#lastStep(path, () => {});
    if (step?.items === undefined || !step.items.delete(item) || step.items.size > 0) return;
    step.items = undefined;
    this.#tidy(step);
  }

  /** Of `path` and of all above it, the deepest first. */
  find(path: string): T[] {
    const found: T[] = [];
    this.#lastStep(path, ({ items }) => {
      if (items !== undefined) found.push(...items);
    });
    return found.reverse();
  }

  /** The step at which `path` ends, if there is one. `visit` sees each on the way, and that one. */
  #lastStep(path: string, visit: (step: Step<T>) => void): Step<T> | undefined {
    let step = this.#root;
    visit(step);
    for (let at = 1; at < path.length; ) {
      const next = step.below?.get(nameAt(path, at));
      if (next === undefined || !isNameBoundary(path, at + next.label.length)) return undefined;
      if (!path.startsWith(next.label, at)) return undefined;
      step = next;
      visit(step);
      at += step.label.length + 1;
    }
    return step;
  }

  /** The same, made where it is missing. */
  #stepFor(path: string): Step<T> {
    let step = this.#root;
    for (let at = 1; at < path.length; ) {
      const name = nameAt(path, at);
      const next = step.below?.get(name);
      if (next === undefined) return newStep(step, name, path.slice(at));
      const common = commonNames(next.label, path, at);
      step = common === next.label.length ? next : split(next, common);
      at += common + 1;
    }
    return step;
  }

  /** A step without items has two steps below it at least, or is the root. */
  #tidy(step: Step<T>): void {
    const { above, below } = step;
    if (above === undefined) return;
    if (below === undefined) {
      removeBelow(above, step);
      if (above.items === undefined && above.below?.size === 1) this.#tidy(above);
    } else if (below.size === 1) {
      const [only] = [...below].map(([, next]) => next);
      only!.label = `${step.label}/${only!.label}`;
      only!.above = above;
      above.below!.set(copyOf(nameAt(step.label, 0)), only!);
    }
  }
}

/** Clients may watch any text. What no node can have as its path is below nothing, and nothing is below it. */
function isNodePath(path: string): boolean {
  if (path === '/') return true;
  return path.startsWith('/') && !path.endsWith('/') && !path.includes('//');
}

function nameAt(path: string, at: number): string {
  const end = path.indexOf('/', at);
  return end === -1 ? path.slice(at) : path.slice(at, end);
}

function isNameBoundary(path: string, at: number): boolean {
  return at === path.length || path.charCodeAt(at) === slash;
}

/** How much of the label the path has at `at`, in whole names: one name at least. */
function commonNames(label: string, path: string, at: number): number {
  let common = 0;
  while (common < label.length && label.charCodeAt(common) === path.charCodeAt(at + common)) {
    common += 1;
  }
  const isWhole = isNameBoundary(label, common) && isNameBoundary(path, at + common);
  return isWhole ? common : label.lastIndexOf('/', common - 1);
}

function newStep<T>(above: Step<T>, name: string, label: string): Step<T> {
  const step: Step<T> = { label: copyOf(label), above, below: undefined, items: undefined };
  above.below ??= new TextMap();
  above.below.set(copyOf(name), step);
  return step;
}

/** A slice of a string keeps all of the string in memory, also when its watch is gone. */
function copyOf(text: string): string {
  return Buffer.from(text).toString();
}

/** Puts a step above `step`, for the first `length` characters of its label, and returns it. */
function split<T>(step: Step<T>, length: number): Step<T> {
  const { label } = step;
  const upper = newStep(step.above!, nameAt(label, 0), label.slice(0, length));
  step.label = copyOf(label.slice(length + 1));
  step.above = upper;
  upper.below = new TextMap();
  upper.below.set(copyOf(nameAt(step.label, 0)), step);
  return upper;
}

function removeBelow<T>(above: Step<T>, step: Step<T>): void {
  above.below!.delete(nameAt(step.label, 0));
  if (above.below!.size === 0) above.below = undefined;
}
