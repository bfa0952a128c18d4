/**
 * The values of random requests: paths, versions, data, ACLs.
 *
 * Most fit what is likely there, so that requests meet; a few are such as no client sends.
 */

import type { Acl } from '../../src/protocol/index.ts';
import {
  brokenNames,
  depths,
  ids,
  names,
  oddNames,
  open,
  quotaTexts,
  systemPaths,
} from './generate-tables.ts';
import type { Random } from './random.ts';

export class Values {
  readonly #random: Random;
  /** What is likely there, as far as can be known without the answers. */
  readonly nodes: string[] = ['/'];

  readonly #isOpen: boolean;

  /** `isOpen`: every ACL is the open one. */
  constructor(random: Random, isOpen: boolean) {
    this.#random = random;
    this.#isOpen = isOpen;
  }

  path(): string {
    const random = this.#random;
    const kind = random.weighted([
      [700, 'there'],
      [200, 'usual'],
      [40, 'odd'],
      [20, 'broken'],
      [25, 'system'],
      [15, 'root'],
    ] as const);
    switch (kind) {
      case 'there':
        return random.pick(this.nodes);
      case 'usual':
        return this.#joined(names, random.weighted(depths));
      case 'odd':
        return `${this.#joined(names, random.below(2))}/${random.pick(oddNames)}`;
      case 'broken':
        return random.chance(0.3)
          ? random.pick(['', 'a', 'a/b', '//', '/a//b', '/a/', '/a/b/', '/./a', '/../a'])
          : `${this.#joined(names, random.below(2))}/${random.pick(brokenNames)}`;
      case 'system':
        return random.pick(systemPaths);
      case 'root':
        return '/';
    }
  }

  #joined(from: readonly string[], depth: number): string {
    const random = this.#random;
    const path = random.times(depth, () => `/${random.pick(from)}`).join('');
    // Now and then the node that a sequential create made.
    return random.chance(0.04) ? `${path}/q-000000000${random.below(4)}` : path;
  }

  version(): number {
    const random = this.#random;
    if (random.chance(0.7)) return -1;
    return random.weighted<number>([
      [10, random.below(3)],
      [1, -2],
      [1, 0x7fff_ffff],
    ]);
  }

  data(): Buffer | null {
    const random = this.#random;
    return random.weighted<Buffer | null>([
      [12, Buffer.from('data'.repeat(random.below(4)))],
      [3, null],
      [2, Buffer.from(random.pick(quotaTexts))],
      [1, Buffer.alloc(random.below(300), 0xff)],
    ]);
  }

  ttl(): bigint {
    const random = this.#random;
    if (random.chance(0.8)) return 1_000_000n;
    return random.pick([0n, -1n, 1n << 39n, (1n << 40n) - 1n, 1n << 40n, 1n << 62n]);
  }

  acl(): Acl[] {
    const random = this.#random;
    if (this.#isOpen || random.chance(0.8)) return open;
    return random.times(random.below(4), () => {
      const perms = random.weighted([
        [4, 31],
        [2, 1],
        [2, random.below(32)],
        [1, random.pick([0, -1, 64])],
      ]);
      return { perms, id: random.weighted(ids) };
    });
  }
}
