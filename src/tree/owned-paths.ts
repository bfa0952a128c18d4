/**
 * Who owns what: the ephemeral nodes of each session, the containers, and the nodes with a time to live.
 *
 * In: paths as they come and go, with their owner field. Out: for a session, its paths; for the reaper,
 * what it has to look at. What always holds: a session without a path is not in here.
 */

import { ownerKind } from './owners.ts';
import { PathSet } from './path-set.ts';

const noPaths: ReadonlySet<string> = new Set();

export class OwnedPaths {
  readonly #extendedTypes: boolean;
  readonly #ephemerals = new Map<bigint, Set<string>>();
  /** Bytes of the paths that each session owns: they stand in one txn when it ends. */
  readonly #bytes = new Map<bigint, number>();
  readonly #containers = new PathSet();
  readonly #ttls = new PathSet();
  #ephemeralCount = 0;

  constructor(extendedTypes: boolean) {
    this.#extendedTypes = extendedTypes;
  }

  get ephemeralCount(): number {
    return this.#ephemeralCount;
  }

  get bySession(): ReadonlyMap<bigint, ReadonlySet<string>> {
    return this.#ephemerals;
  }

  get containers(): Iterable<string> {
    return this.#containers;
  }

  get ttls(): Iterable<string> {
    return this.#ttls;
  }

  of(session: bigint): ReadonlySet<string> {
    return this.#ephemerals.get(session) ?? noPaths;
  }

  bytesOf(session: bigint): number {
    return this.#bytes.get(session) ?? 0;
  }

  /** `owner` as the node has it: 0 for one that nobody owns. */
  add(path: string, owner: bigint): void {
    switch (ownerKind(owner, this.#extendedTypes)) {
      case 'container':
        this.#containers.add(path);
        break;
      case 'ttl':
        this.#ttls.add(path);
        break;
      case 'session': {
        const paths = this.#ephemerals.get(owner);
        if (paths === undefined) this.#ephemerals.set(owner, new Set([path]));
        else paths.add(path);
        this.#bytes.set(owner, this.bytesOf(owner) + Buffer.byteLength(path));
        this.#ephemeralCount += 1;
        break;
      }
    }
  }

  delete(path: string, owner: bigint): void {
    switch (ownerKind(owner, this.#extendedTypes)) {
      case 'container':
        this.#containers.delete(path);
        break;
      case 'ttl':
        this.#ttls.delete(path);
        break;
      case 'session': {
        const paths = this.#ephemerals.get(owner);
        paths?.delete(path);
        this.#bytes.set(owner, this.bytesOf(owner) - Buffer.byteLength(path));
        if (paths?.size === 0) {
          this.#ephemerals.delete(owner);
          this.#bytes.delete(owner);
        }
        this.#ephemeralCount -= 1;
        break;
      }
    }
  }
}
