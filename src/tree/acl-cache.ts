/**
 * Each distinct ACL once, under a small number: what a node keeps in place of the list, and what a
 * snapshot holds (ReferenceCountedACLCache). -1 is the open ACL, which is never counted.
 */

import { type Acl, openAcl } from '../protocol/index.ts';
import { TextMap } from '../support/index.ts';

export const openAclId = -1;

/** For a node whose own ACL is not known: nobody may do anything with it but the super user. */
export const nobodyAcl: readonly Acl[] = [{ perms: 0, id: { scheme: 'world', id: 'anyone' } }];

interface Entry {
  readonly acl: readonly Acl[];
  readonly key: string;
  uses: number;
}

const keyOf = (acl: readonly Acl[]): string =>
  JSON.stringify(acl.map(({ perms, id }) => [perms, id.scheme, id.id]));

const openKey = keyOf(openAcl);

export class AclCache {
  readonly #entries = new Map<number, Entry>();
  readonly #ids = new TextMap<number>();
  #last = 0;
  /** Nodes of a snapshot have numbers that its list has not. */
  #hasUnlisted = false;

  get size(): number {
    return this.#entries.size;
  }

  /** The number of this ACL, counting one more use of it. */
  use(acl: readonly Acl[]): number {
    if (acl === openAcl) return openAclId;
    const key = keyOf(acl);
    // An ACL of nothing stands in old snapshots only, and means the same there.
    if (key === openKey || acl.length === 0) return openAclId;
    const known = this.#ids.get(key);
    if (known !== undefined) {
      this.#entries.get(known)!.uses += 1;
      return known;
    }
    const id = ++this.#last;
    this.#entries.set(id, { acl: [...acl], key, uses: 1 });
    this.#ids.set(key, id);
    return id;
  }

  /** Is it one of those kept already? Then a node with it costs nothing more. */
  has(acl: readonly Acl[]): boolean {
    const key = keyOf(acl);
    return key === openKey || this.#ids.has(key);
  }

  release(id: number): void {
    if (id === openAclId) return;
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    entry.uses -= 1;
    if (entry.uses > 0) return;
    this.#entries.delete(id);
    this.#ids.delete(entry.key);
  }

  get(id: number): readonly Acl[] {
    if (id === openAclId) return openAcl;
    const entry = this.#entries.get(id);
    if (entry !== undefined) return entry.acl;
    if (this.#hasUnlisted) return nobodyAcl;
    throw new Error(`no ACL has the number ${id}`);
  }

  get hasUnlisted(): boolean {
    return this.#hasUnlisted;
  }

  /** Every node has an ACL that is known. */
  allListed(): void {
    this.#hasUnlisted = false;
  }

  isListed(id: number): boolean {
    return id === openAclId || this.#entries.has(id);
  }

  /** The number that the next new one gets. */
  get nextId(): number {
    return this.#last + 1;
  }

  /** For a snapshot: what is kept, by number. */
  entries(): [id: number, acl: readonly Acl[]][] {
    return [...this.#entries].map(([id, { acl }]) => [id, acl]);
  }

  /** From a snapshot: uses are counted as its nodes are read. */
  restore(id: number, acl: readonly Acl[]): void {
    const key = keyOf(acl);
    this.#entries.set(id, { acl: [...acl], key, uses: 0 });
    this.#ids.set(key, id);
    this.#last = Math.max(this.#last, id);
  }

  clear(): void {
    this.#entries.clear();
    this.#ids.clear();
    this.#last = 0;
    this.#hasUnlisted = false;
  }

  /**
   * A node of a snapshot has it. One that is not listed was given while Apache wrote the snapshot: the
   * replay gives it again, under a number that must not be taken for this one.
   */
  countUse(id: number): void {
    if (id === openAclId) return;
    const entry = this.#entries.get(id);
    if (entry !== undefined) {
      entry.uses += 1;
      return;
    }
    this.#last = Math.max(this.#last, id);
    this.#hasUnlisted = true;
  }

  /** After a snapshot was read: what no node of it has (a fuzzy snapshot may name such). */
  dropUnused(): void {
    for (const [id, entry] of this.#entries) {
      if (entry.uses > 0) continue;
      this.#entries.delete(id);
      this.#ids.delete(entry.key);
    }
  }
}
