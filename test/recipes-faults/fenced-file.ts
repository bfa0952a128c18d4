/** A file that refuses whoever comes with a lower token than it has ever seen, be it to read or to write. */

import { readFileSync, writeFileSync } from 'node:fs';

export interface Fenced {
  readonly token: bigint;
  readonly value: number;
}

export class FencedFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  get(): Fenced {
    const [token = '0', value = '0'] = this.#text().split(' ');
    return { token: BigInt(token), value: Number(value) };
  }

  /** Remembers the token. Null: it is too old. */
  read(token: bigint): number | null {
    const now = this.get();
    if (token < now.token) return null;
    writeFileSync(this.#path, `${token} ${now.value}`);
    return now.value;
  }

  /** False: the token is too old, and nothing was written. */
  write(token: bigint, value: number): boolean {
    if (token < this.get().token) return false;
    writeFileSync(this.#path, `${token} ${value}`);
    return true;
  }

  #text(): string {
    try {
      return readFileSync(this.#path, 'utf8');
    } catch {
      return '0 0';
    }
  }
}
