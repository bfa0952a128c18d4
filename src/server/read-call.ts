/**
 * One request that reads, as its handler sees it. There is a single one of these for each server,
 * pointed at one request after the other: nothing is allocated for a read.
 */

import type { Buffer } from 'node:buffer';
import { ProtocolError, Reader, readInt } from '../jute/index.ts';
import type { Id } from '../protocol/index.ts';
import { type NodeStore, noNode } from '../tree/index.ts';
import type { Connection } from './connection.ts';

export class ReadCall {
  connection!: Connection;
  bytes!: Buffer;
  /** Behind the request's header. */
  at = 0;
  end = 0;
  borrowed = false;
  xid = 0;
  ids: readonly Id[] = [];
  readonly #reader = new Reader();
  #pathEnd = 0;
  /** Set by `target`: the node that the path names, or -1, and whether it is to be watched. */
  node = noNode;
  watch = false;

  /** For requests that are rare enough to be decoded as their record says. */
  get reader(): Reader {
    return this.#reader.reset(this.bytes, this.at, this.end, this.borrowed);
  }

  /** Reads `path` and, where there is one, `watch`, without making a string of the path. */
  target(nodes: NodeStore, hasWatch: boolean): void {
    const { bytes, at, end } = this;
    const length = end - at < 4 ? -1 : readInt(bytes, at);
    const pathEnd = at + 4 + length;
    if (length < 0 || pathEnd + (hasWatch ? 1 : 0) > end) throw new ProtocolError('cut short');
    this.#pathEnd = pathEnd;
    this.watch = hasWatch && bytes[pathEnd] !== 0;
    // Apache's map has the root under an empty path too.
    this.node = length === 0 ? nodes.find('/') : nodes.findBytes(bytes, at + 4, pathEnd);
  }

  /** After `target`. */
  get path(): string {
    return this.bytes.toString('utf8', this.at + 4, this.#pathEnd);
  }

  get pathHasNul(): boolean {
    const nul = this.bytes.indexOf(0, this.at + 4);
    return nul !== -1 && nul < this.#pathEnd;
  }
}
