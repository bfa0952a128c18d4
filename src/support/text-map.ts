/**
 * A `Map` whose keys are texts that others choose.
 *
 * V8 hashes a string of more than 16,383 characters by its length alone, so that a few thousand long keys of one
 * length make each lookup compare them all. Such keys stand here under a digest of theirs.
 */

import { createHash } from 'node:crypto';

/** V8 hashes all characters of texts up to here. */
const hashedCharsMax = 16_000;

/** UTF-16 is what a string is made of, so that different strings have different bytes. */
function digestOf(text: string): string {
  return createHash('sha256').update(text, 'utf16le').digest('base64');
}

interface Long<V> {
  readonly text: string;
  readonly value: V;
}

export class TextMap<V> implements Iterable<[text: string, value: V]> {
  readonly #short = new Map<string, V>();
  /** Most maps have none. */
  #long: Map<string, Long<V>> | undefined;

  get size(): number {
    return this.#short.size + (this.#long?.size ?? 0);
  }

  get(text: string): V | undefined {
    if (text.length <= hashedCharsMax) return this.#short.get(text);
    return this.#long?.get(digestOf(text))?.value;
  }

  has(text: string): boolean {
    if (text.length <= hashedCharsMax) return this.#short.has(text);
    return this.#long?.has(digestOf(text)) ?? false;
  }

  set(text: string, value: V): void {
    if (text.length <= hashedCharsMax) {
      this.#short.set(text, value);
      return;
    }
    this.#long ??= new Map();
    this.#long.set(digestOf(text), { text, value });
  }

  /** False where it was not there. */
  delete(text: string): boolean {
    if (text.length <= hashedCharsMax) return this.#short.delete(text);
    return this.#long?.delete(digestOf(text)) ?? false;
  }

  clear(): void {
    this.#short.clear();
    this.#long = undefined;
  }

  *keys(): Generator<string, void, void> {
    for (const [text] of this) yield text;
  }

  *[Symbol.iterator](): Generator<[text: string, value: V], void, void> {
    yield* this.#short;
    if (this.#long === undefined) return;
    for (const { text, value } of this.#long.values()) yield [text, value];
  }
}
