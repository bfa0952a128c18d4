/**
 * What was changed through the console and by command lines (`journal.ts`), newest first: who, when, what
 * it was and what it became, so that it can be taken back. Kept in memory, as many as `auditMax`; a line for each goes to who started us.
 */

import { limits } from './api.ts';
import type { AuditEntry, AuditView } from './views.ts';

/** How to take a change back, for as long as nobody else has touched it since, and what it keeps for that. */
export interface Undo {
  readonly bytes: number;
  run(): Promise<{ readonly path: string }>;
}

/** Of all ways back together; the oldest goes first. */
const undoBytesMax = 32 * 1024 * 1024;

export type Noted = Omit<AuditEntry, 'id' | 'atMs'>;

export class AuditLog {
  readonly #entries: AuditEntry[] = [];
  readonly #undos = new Map<number, Undo>();
  readonly #onEntry: (entry: AuditEntry, isNew: boolean) => void;
  readonly #wallMs: () => number;
  #id = 0;
  #undoBytes = 0;

  /** @param onEntry is told of each that is new, and of what becomes of those that are not. */
  constructor(
    onEntry: (entry: AuditEntry, isNew: boolean) => void,
    wallMs: () => number = Date.now,
  ) {
    this.#onEntry = onEntry;
    this.#wallMs = wallMs;
  }

  /** As it is done. */
  add(noted: Noted, undo?: Undo): AuditEntry {
    const entry = this.insert(noted, undo, this.#wallMs());
    this.#onEntry(entry, true);
    return entry;
  }

  /** What was done elsewhere: it stands among those of its time, and nobody is told. */
  insert(noted: Noted, undo: Undo | undefined, atMs: number): AuditEntry {
    this.#id += 1;
    const entry: AuditEntry = { ...noted, id: this.#id, atMs };
    let at = this.#entries.length;
    while (at > 0 && this.#entries[at - 1]!.atMs > atMs) at -= 1;
    this.#entries.splice(at, 0, entry);
    if (undo !== undefined) this.#keep(entry.id, undo);
    if (this.#entries.length > limits.auditMax) this.#drop(this.#entries.shift()!.id);
    return entry;
  }

  /** Something was done from here; what command lines did can be read again. */
  get hasOwn(): boolean {
    return this.#entries.some(({ action }) => action !== 'cli');
  }

  undoOf(id: number): { readonly entry: AuditEntry; readonly undo: Undo } | null {
    const entry = this.#entries.find((one) => one.id === id);
    const undo = this.#undos.get(id);
    return entry === undefined || undo === undefined ? null : { entry, undo };
  }

  /** It was taken back; once is enough. */
  undone(id: number): void {
    this.#drop(id);
    this.#mark(id, 'done');
  }

  #keep(id: number, undo: Undo): void {
    this.#undos.set(id, undo);
    this.#undoBytes += undo.bytes;
    for (const oldest of this.#undos.keys()) {
      if (this.#undoBytes <= undoBytesMax) return;
      this.#drop(oldest);
      this.#mark(oldest, 'no');
    }
  }

  #drop(id: number): void {
    this.#undoBytes -= this.#undos.get(id)?.bytes ?? 0;
    this.#undos.delete(id);
  }

  #mark(id: number, undo: AuditEntry['undo']): void {
    const at = this.#entries.findIndex((one) => one.id === id);
    if (at === -1) return;
    this.#entries[at] = { ...this.#entries[at]!, undo };
    this.#onEntry(this.#entries[at], false);
  }

  view({
    offset,
    limit,
    filter,
  }: {
    offset: number;
    limit: number;
    filter: string;
  }): Omit<AuditView, 'hasCommandLines'> {
    const wanted = filter.toLowerCase();
    const matching = this.#entries
      .filter(({ path, action, who, note }) =>
        `${path} ${action} ${who} ${note ?? ''}`.toLowerCase().includes(wanted),
      )
      .reverse();
    return { entries: matching.slice(offset, offset + limit), total: matching.length };
  }
}
