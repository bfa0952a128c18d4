/**
 * The tree as a flat list of rows, of which only those on screen are known.
 *
 * In: which branches are open, and pages of children as they arrive. Out: how many rows there are, what
 * stands in row n, and which pages have to be asked for so that some rows can be shown.
 * A branch knows its number of children at once and their names page by page, so that one with 300,000
 * children costs no more than what is looked at; at most `pagesMax` pages of a branch are kept.
 * Pure: it asks nobody and draws nothing. Children stand in the order of their names.
 */

export interface TreeStat {
  readonly numChildren: number;
}

export interface TreeChild<S extends TreeStat = TreeStat> {
  readonly name: string;
  readonly path: string;
  readonly stat: S | null;
}

export interface TreeRow<C> {
  readonly path: string;
  /** 0 is the root. */
  readonly depth: number;
  /** Null: not loaded yet. The root has none either. */
  readonly child: C | null;
  readonly isOpen: boolean;
  /** Where it stands among its siblings. */
  readonly index: number;
  readonly siblings: number;
}

export interface Want {
  readonly path: string;
  readonly page: number;
}

interface Branch<C> {
  readonly path: string;
  total: number;
  readonly pages: Map<number, readonly C[]>;
  /** Pages that are shown while they are asked for again. */
  readonly old: Set<number>;
  /** Which change it was told of last. */
  changedAt: number;
  /** Open children by name, with where they stand. */
  readonly open: Map<string, { index: number; branch: Branch<C> }>;
}

export const pageRows = 200;
const pagesMax = 60;

export class TreeModel<C extends TreeChild> {
  readonly #root: Branch<C> = branchOf('/');
  #isRootOpen = true;
  #changes = 0;

  /** How many changes it was told of. Noted by whoever asks for a page, and given back with the answer. */
  get changes(): number {
    return this.#changes;
  }

  /** Rows in all: the root itself, and whatever is open below it. */
  get size(): number {
    return 1 + (this.#isRootOpen ? rowsOf(this.#root) : 0);
  }

  rowAt(at: number): TreeRow<C> {
    if (at === 0) {
      return { path: '/', depth: 0, child: null, isOpen: this.#isRootOpen, index: 0, siblings: 1 };
    }
    let branch = this.#root;
    let depth = 1;
    let rest = at - 1;
    for (;;) {
      const step = stepInto(branch, rest);
      if (step.inside === null) {
        const child = childAt(branch, step.index);
        return {
          path: child?.path ?? `${branch.path}#${step.index}`,
          depth,
          child,
          isOpen: child !== null && branch.open.has(child.name),
          index: step.index,
          siblings: branch.total,
        };
      }
      branch = step.inside;
      rest = step.rest;
      depth += 1;
    }
  }

  /** Pages that rows `from` to `to` (both included) need and that are not there, or only as they were. */
  wants(from: number, to: number): Want[] {
    const found = new Map<string, Want>();
    for (const path of this.#emptied()) found.set(`0 ${path}`, { path, page: 0 });
    for (let at = Math.max(1, from); at <= Math.min(to, this.size - 1); at += 1) {
      let branch = this.#root;
      let rest = at - 1;
      for (;;) {
        const step = stepInto(branch, rest);
        if (step.inside === null) {
          const page = Math.floor(step.index / pageRows);
          if (!branch.pages.has(page) || branch.old.has(page)) {
            found.set(`${page} ${branch.path}`, { path: branch.path, page });
          }
          break;
        }
        branch = step.inside;
        rest = step.rest;
      }
    }
    return [...found.values()];
  }

  /** Open, without a row that could want anything, and no longer known to be empty. */
  #emptied(): string[] {
    if (!this.#isRootOpen) return [];
    const found: string[] = this.#root.pages.size === 0 ? ['/'] : [];
    const walk = (branch: Branch<C>): void => {
      const isKnown = branch.pages.size === 0 || (branch.pages.has(0) && !branch.old.has(0));
      if (branch.total === 0 && !isKnown) found.push(branch.path);
      for (const { branch: inner } of branch.open.values()) walk(inner);
    };
    walk(this.#root);
    return found;
  }

  /**
   * Takes a page of children, asked for when `asOf` changes were known. What has changed since may be in it
   * or not: it is shown, and wanted again. False: nobody has that branch open any more.
   */
  put(
    path: string,
    total: number,
    offset: number,
    rows: readonly C[],
    asOf = this.#changes,
  ): boolean {
    const branch = this.#find(path);
    if (!branch) return false;
    branch.total = total;
    const page = Math.floor(offset / pageRows);
    branch.pages.delete(page);
    branch.pages.set(page, rows);
    if (branch.changedAt > asOf) branch.old.add(page);
    else branch.old.delete(page);
    for (const key of branch.pages.keys()) {
      if (branch.pages.size <= pagesMax && key * pageRows < total) break;
      if (key !== page) branch.pages.delete(key);
    }
    this.#settle(branch, page, rows);
    return true;
  }

  /** After a page came anew, open children may stand elsewhere than before, or be gone. */
  #settle(branch: Branch<C>, page: number, rows: readonly C[]): void {
    rows.forEach(({ name }, at) => {
      const open = branch.open.get(name);
      if (open) open.index = page * pageRows + at;
    });
    for (const [name, open] of [...branch.open]) {
      if (open.index >= branch.total) open.index = Math.max(0, branch.total - 1);
      if (Math.floor(open.index / pageRows) !== page || rows.some((row) => row.name === name))
        continue;
      const first = rows[0];
      const last = rows[rows.length - 1];
      if (first && name < first.name && page > 0) open.index = page * pageRows - 1;
      else if (last && name > last.name && (page + 1) * pageRows < branch.total) {
        open.index = (page + 1) * pageRows;
      } else branch.open.delete(name);
    }
  }

  open(path: string, children = 0): void {
    if (path === '/') {
      this.#isRootOpen = true;
      return;
    }
    const parent = this.#find(parentPath(path));
    if (!parent) return;
    const name = path.slice(path.lastIndexOf('/') + 1);
    const index = indexIn(parent, name);
    if (index === null || parent.open.has(name)) return;
    const branch: Branch<C> = branchOf(path);
    branch.total = children;
    branch.changedAt = this.#changes;
    parent.open.set(name, { index, branch });
  }

  close(path: string): void {
    if (path === '/') this.#isRootOpen = false;
    else this.#find(parentPath(path))?.open.delete(path.slice(path.lastIndexOf('/') + 1));
  }

  isOpen(path: string): boolean {
    return path === '/' ? this.#isRootOpen : this.#find(path) !== null;
  }

  /** Children of `path` changed: what is known of them is old. */
  invalidate(path: string): boolean {
    const branch = this.#find(path);
    if (!branch) return false;
    this.#changes += 1;
    this.#age(branch);
    return true;
  }

  invalidateAll(): void {
    this.#changes += 1;
    const walk = (branch: Branch<C>): void => {
      this.#age(branch);
      for (const { branch: inner } of branch.open.values()) walk(inner);
    };
    walk(this.#root);
  }

  #age(branch: Branch<C>): void {
    branch.changedAt = this.#changes;
    for (const page of branch.pages.keys()) branch.old.add(page);
  }

  /** The row in which `path` stands, or null while nobody knows. */
  indexOf(path: string): number | null {
    if (path === '/') return 0;
    if (!this.#isRootOpen) return null;
    const names = path.slice(1).split('/');
    let branch = this.#root;
    let at = 1;
    for (const [level, name] of names.entries()) {
      const index = branch.open.get(name)?.index ?? indexIn(branch, name);
      if (index === null) return null;
      at += index;
      for (const open of branch.open.values()) if (open.index < index) at += rowsOf(open.branch);
      if (level === names.length - 1) return at;
      const next = branch.open.get(name);
      if (!next) return null;
      branch = next.branch;
      at += 1;
    }
    return null;
  }

  #find(path: string): Branch<C> | null {
    if (path === '/') return this.#root;
    let branch = this.#root;
    for (const name of path.slice(1).split('/')) {
      const next = branch.open.get(name);
      if (!next) return null;
      branch = next.branch;
    }
    return branch;
  }
}

function branchOf<C>(path: string): Branch<C> {
  return { path, total: 0, pages: new Map(), old: new Set(), changedAt: 0, open: new Map() };
}

function parentPath(path: string): string {
  const at = path.lastIndexOf('/');
  return at === 0 ? '/' : path.slice(0, at);
}

function rowsOf<C>(branch: Branch<C>): number {
  let rows = branch.total;
  for (const open of branch.open.values()) rows += rowsOf(open.branch);
  return rows;
}

function childAt<C>(branch: Branch<C>, index: number): C | null {
  return branch.pages.get(Math.floor(index / pageRows))?.[index % pageRows] ?? null;
}

function indexIn<C extends TreeChild>(branch: Branch<C>, name: string): number | null {
  for (const [page, rows] of branch.pages) {
    const at = rows.findIndex((row) => row.name === name);
    if (at !== -1) return page * pageRows + at;
  }
  return null;
}

/** Row `rest` of what a branch shows: a child of its own, or a row inside one that is open. */
function stepInto<C>(
  branch: Branch<C>,
  rest: number,
): { index: number; inside: null } | { index: number; inside: Branch<C>; rest: number } {
  let shift = 0;
  const open = [...branch.open.values()].sort((left, right) => left.index - right.index);
  for (const { index, branch: inner } of open) {
    const row = index + shift;
    if (rest <= row) break;
    const rows = rowsOf(inner);
    if (rest <= row + rows) return { index, inside: inner, rest: rest - row - 1 };
    shift += rows;
  }
  return { index: rest - shift, inside: null };
}
