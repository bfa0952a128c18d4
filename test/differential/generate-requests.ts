/**
 * Random requests, one for each op of the table.
 *
 * In: an op. Out: a request for it. What a request would make, delete or watch is kept in mind, so that
 * those after it have something to meet; whether the server did it is not known here.
 */

import type { MultiPart, OpName } from '../../src/protocol/index.ts';
import { multiSizes, multiWeights, names } from './generate-tables.ts';
import type { Values } from './generate-values.ts';
import type { Random } from './random.ts';
import type { Call } from './script.ts';

export class Requests {
  readonly #random: Random;
  readonly #values: Values;
  /** Nodes that are likely ephemeral, and so can't have children. */
  readonly #leaves = new Set<string>();
  readonly #watched: string[] = [];

  constructor(random: Random, values: Values) {
    this.#random = random;
    this.#values = values;
  }

  of(op: OpName): Call['request'] {
    const random = this.#random;
    const path = this.#values.path();
    switch (op) {
      case 'create':
      case 'create2':
        return this.#create(random.chance(0.93) ? random.below(4) : random.pick([4, 5, 6, 7, -1]));
      case 'createContainer':
        return this.#create(random.chance(0.95) ? 4 : random.below(7));
      case 'createTTL': {
        const flags = random.chance(0.95) ? random.pick([5, 6]) : random.below(8);
        return { ...this.#create(flags), ttl: this.#values.ttl() };
      }
      case 'delete':
        return this.#delete();
      case 'deleteContainer':
        return { path };
      case 'setData':
        return this.#setData();
      case 'setACL':
        return { path, acl: this.#values.acl(), version: this.#values.version() };
      case 'exists':
      case 'getData':
      case 'getChildren':
      case 'getChildren2':
        return random.chance(0.4)
          ? { path: this.#watch(path), watch: true }
          : { path, watch: false };
      case 'getACL':
      case 'getAllChildrenNumber':
      case 'sync':
        return { path };
      case 'getEphemerals':
        return { prefixPath: random.chance(0.5) ? path : random.pick(['', '/', ' ', '/a/', 'a']) };
      case 'addWatch':
        return {
          path: this.#watch(path),
          mode: random.chance(0.97) ? random.below(2) : random.pick([-1, 2, 7]),
        };
      case 'checkWatches':
      case 'removeWatches':
        return {
          path: this.#watchedPath(),
          type: random.chance(0.97) ? 1 + random.below(5) : random.pick([0, 6, -1]),
        };
      case 'setWatches':
      case 'setWatches2':
        return this.#setWatches(op);
      case 'multi':
        return this.#multi();
      case 'multiRead':
        return this.#multiRead();
      case 'reconfig':
        return {
          joiningServers: random.pick([null, 'server.2=127.0.0.1:1:2;3']),
          leavingServers: random.pick([null, '1']),
          newMembers: random.pick([null, 'server.1=127.0.0.1:1:2;3']),
          curConfigId: random.pick([-1n, 0n, 5n]),
        };
      default:
        return {};
    }
  }

  #create(flags: number) {
    const path = this.#newPath();
    const acl = this.#values.acl();
    const above = path.slice(0, path.lastIndexOf('/')) || '/';
    // What a sequential one will be called is not known; now and then the guess is right.
    const isKnown = (flags & 2) === 0 || flags > 3 || this.#random.chance(0.2);
    if (
      isKnown &&
      this.#values.nodes.length < 24 &&
      this.#values.nodes.includes(above) &&
      !this.#leaves.has(above)
    ) {
      const made = flags & 2 && flags < 4 ? `${path}0000000000` : path;
      if (!this.#values.nodes.includes(made)) this.#values.nodes.push(made);
      if (flags === 1 || flags === 3) this.#leaves.add(made);
    }
    return { path, data: this.#values.data(), acl, flags };
  }

  /** Mostly below a node that is likely there and can have children. */
  #newPath(): string {
    const random = this.#random;
    if (random.chance(0.25)) return this.#values.path();
    const above = random.pick(this.#values.nodes);
    if (above.length > 40 || (this.#leaves.has(above) && random.chance(0.9))) {
      return `/${random.pick(names)}`;
    }
    return `${above === '/' ? '' : above}/${random.pick(names)}`;
  }

  #delete() {
    const random = this.#random;
    // Those made last are the ones without children.
    const latest = this.#values.nodes.at(
      -1 - random.below(Math.min(3, this.#values.nodes.length)),
    )!;
    const path = random.chance(0.5) ? latest : this.#values.path();
    const version = this.#values.version();
    const at = this.#values.nodes.indexOf(path);
    if (version === -1 && at > 0) this.#values.nodes.splice(at, 1);
    this.#leaves.delete(path);
    return { path, version };
  }

  #watchedPath(): string {
    const random = this.#random;
    return this.#watched.length > 0 && random.chance(0.8)
      ? random.pick(this.#watched)
      : this.#values.path();
  }

  #watch(path: string): string {
    if (this.#watched.length < 20) this.#watched.push(path);
    else this.#watched[this.#random.below(20)] = path;
    return path;
  }

  #setData() {
    return {
      path: this.#values.path(),
      data: this.#values.data(),
      version: this.#values.version(),
    };
  }

  #setWatches(op: 'setWatches' | 'setWatches2') {
    const random = this.#random;
    const some = () => random.times(random.below(4), () => this.#watch(this.#values.path()));
    const request = {
      relativeZxid: random.pick([0n, 1n, 20n, 50n, 100n, 200n, 0x7fff_ffff_ffff_ffffn, -1n]),
      dataWatches: some(),
      existWatches: some(),
      childWatches: some(),
    };
    if (op === 'setWatches') return request;
    return { ...request, persistentWatches: some(), persistentRecursiveWatches: some() };
  }

  #multi(): MultiPart[] {
    const random = this.#random;
    return random.times(random.weighted(multiSizes), (): MultiPart => {
      switch (random.weighted(multiWeights)) {
        case 'create':
          return { op: 'create', request: this.#create(random.chance(0.95) ? random.below(4) : 4) };
        case 'create2':
          return {
            op: 'create2',
            request: this.#create(random.chance(0.95) ? random.below(4) : 4),
          };
        case 'createContainer':
          return {
            op: 'createContainer',
            request: this.#create(random.chance(0.9) ? 4 : random.below(7)),
          };
        case 'createTTL': {
          const flags = random.chance(0.9) ? random.pick([5, 6]) : random.below(8);
          return { op: 'createTTL', request: { ...this.#create(flags), ttl: this.#values.ttl() } };
        }
        case 'delete':
          return { op: 'delete', request: this.#delete() };
        case 'setData':
          return { op: 'setData', request: this.#setData() };
        case 'check':
          return {
            op: 'check',
            request: { path: this.#values.path(), version: this.#values.version() },
          };
        case 'getData':
          return { op: 'getData', request: { path: this.#values.path(), watch: false } };
      }
    });
  }

  #multiRead(): MultiPart[] {
    const random = this.#random;
    return random.times(random.below(5), (): MultiPart => {
      const request = { path: this.#values.path(), watch: random.chance(0.3) };
      if (random.chance(0.02)) {
        return { op: 'check', request: { path: this.#values.path(), version: -1 } };
      }
      return { op: random.pick(['getData', 'getChildren'] as const), request };
    });
  }
}
