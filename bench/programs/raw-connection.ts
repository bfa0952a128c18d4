/**
 * A connection to a server that does nothing but keep `depth` requests in flight.
 *
 * All that one chunk of replies makes room for leaves in one write. Replies must come in order and
 * without an error; their bodies are not looked at. It keeps no session alive. Events are counted by
 * whoever set `onEvent`.
 *
 * As lean as Node allows, since what it takes of a small machine is missing to the server: all links
 * read into one piece of memory, and write by the socket's descriptor while nothing is queued.
 */

import { writeSync } from 'node:fs';
import net from 'node:net';
import { FrameSplitter, Writer } from '../../src/jute/index.ts';
import {
  ConnectRequest,
  errorCodeOf,
  frameBytesMax,
  passwordBytes,
  specialXids,
  ZkError,
} from '../../src/protocol/index.ts';
import type { Requests } from './requests.ts';
import { append } from './requests.ts';

const sessionTimeoutMs = 30_000;
/** What every link reads into; taken out of it before the next is read. */
const inlet = Buffer.allocUnsafeSlow(65_536);

export interface Pace {
  readonly depth: number;
  readonly requests: Requests;
  /** An answer came to what left at `sentMs`. */
  readonly onAnswer: (sentMs: number, nowMs: number) => void;
  readonly onFailed: (error: Error) => void;
}

export class RawConnection {
  readonly #socket: net.Socket & { readonly _handle?: { readonly fd?: number } | null };
  readonly #writer = new Writer(1024);
  readonly #splitter: FrameSplitter;
  /** When the request of each xid left, by the xid's remainder. */
  #sentMs = new Float64Array(1);
  #pace: Pace | undefined;
  #xid = 0;
  #answered = 0;
  #nowMs = 0;
  #greeted: (() => void) | undefined;
  #drained: (() => void) | undefined;
  onEvent: () => void = () => {};

  private constructor(socket: net.Socket) {
    this.#socket = socket;
    this.#splitter = new FrameSplitter(frameBytesMax, (bytes, start) => this.#frame(bytes, start));
    socket.setNoDelay(true);
  }

  /** Connects and has a session. A server that is starting may take a link and never say a word. */
  static open(port: number, timeoutMs = 0): Promise<RawConnection> {
    return new Promise((resolve, reject) => {
      let connection: RawConnection;
      const callback = (bytes: number) => {
        connection.#received(bytes);
        return true; // goes on reading
      };
      const socket = net.connect({ host: '127.0.0.1', port, onread: { buffer: inlet, callback } });
      connection = new RawConnection(socket);
      socket.setTimeout(timeoutMs, () => socket.destroy());
      const failed = (error: Error) => {
        reject(error);
        connection.#pace?.onFailed(error);
      };
      socket.on('error', failed);
      socket.on('close', () => failed(new Error('the server closed the connection')));
      socket.once('connect', () => connection.#greet(() => resolve(connection)));
    });
  }

  #greet(greeted: () => void): void {
    this.#greeted = greeted;
    const start = this.#writer.beginFrame();
    ConnectRequest.write(this.#writer, {
      protocolVersion: 0,
      lastZxidSeen: 0n,
      timeOut: sessionTimeoutMs,
      sessionId: 0n,
      passwd: Buffer.alloc(passwordBytes),
      readOnly: false,
    });
    this.#writer.endFrame(start);
    this.#flush();
  }

  start(pace: Pace): void {
    this.#pace = pace;
    this.#sentMs = new Float64Array(pace.depth);
    this.#nowMs = performance.now();
    this.#fill(pace);
    this.#flush();
  }

  /** Without a word: the session stays until it expires. */
  destroy(): void {
    this.#socket.destroy();
  }

  /** One request, where none is in flight; resolves with its answer. */
  ask(request: Requests): Promise<void> {
    this.#xid += 1;
    request(this.#writer, this.#xid);
    this.#flush();
    return new Promise((resolve) => {
      this.#drained = resolve;
    });
  }

  /** No more requests; resolves when those in flight are answered and the session is closed. */
  async close(): Promise<void> {
    this.#pace = undefined;
    if (this.#answered < this.#xid) {
      await new Promise<void>((resolve) => {
        this.#drained = resolve;
      });
    }
    const ended = new Promise((resolve) => this.#socket.once('close', resolve));
    append(this.#writer, this.#xid + 1, 'closeSession', {});
    this.#flush();
    await ended;
  }

  #received(bytes: number): void {
    this.#nowMs = performance.now();
    try {
      this.#splitter.push(inlet, bytes);
    } catch (error) {
      if (this.#pace === undefined) throw error; // the end of this program: nobody waits for it
      this.#pace.onFailed(error as Error);
      this.#socket.destroy();
      return;
    }
    if (this.#pace) this.#fill(this.#pace);
    this.#flush();
  }

  #frame(bytes: Buffer, start: number): void {
    if (this.#greeted !== undefined) {
      const greeted = this.#greeted;
      this.#greeted = undefined;
      greeted();
      return;
    }
    const xid = bytes.readInt32BE(start);
    if (xid === specialXids.notification) {
      this.onEvent();
      return;
    }
    if (xid === this.#xid + 1) return; // to closeSession
    this.#answered += 1;
    if (xid !== this.#answered) {
      throw new Error(`a reply with xid ${xid} and not ${this.#answered}`);
    }
    const err = bytes.readInt32BE(start + 12);
    if (err !== 0) throw new ZkError(errorCodeOf(err));
    this.#pace?.onAnswer(this.#sentMs[xid % this.#sentMs.length]!, this.#nowMs);
    if (this.#answered === this.#xid) this.#drained?.();
  }

  #fill({ depth, requests }: Pace): void {
    while (this.#xid - this.#answered < depth) {
      this.#xid += 1;
      this.#sentMs[this.#xid % depth] = this.#nowMs;
      requests(this.#writer, this.#xid);
    }
  }

  #flush(): void {
    const { length, memory } = this.#writer;
    if (length === 0) return;
    const sent = this.#send(memory, length);
    if (sent < length) this.#socket.write(Buffer.from(memory.subarray(sent, length)));
    this.#writer.truncate(0);
  }

  /** How much the kernel took at once. */
  #send(bytes: Buffer, length: number): number {
    const fd = this.#socket._handle?.fd ?? -1;
    if (fd < 0 || this.#socket.writableLength > 0) return 0;
    try {
      return writeSync(fd, bytes, 0, length);
    } catch {
      return 0; // full or broken: the stream waits, or says what is wrong
    }
  }
}
