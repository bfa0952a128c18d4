/**
 * A link to a server that says exactly what it is told to say, and hears everything in the order in
 * which it comes. No retries, no pings, no notion of a session.
 */

import { connect, type Socket } from 'node:net';
import { FrameSplitter } from '../../src/jute/index.ts';

const frameBytesMax = 8 * 1024 * 1024;

export class RawLink {
  /** Every frame so far, without its length. */
  readonly frames: Buffer[] = [];
  /** Our end of it, by which a server names it. */
  readonly port: number;
  #isClosed = false;
  readonly #socket: Socket;
  readonly #splitter: FrameSplitter;
  #waiting: (() => void) | undefined;
  #isDone: () => boolean = () => true;

  private constructor(socket: Socket) {
    this.#socket = socket;
    this.port = socket.localPort!;
    this.#splitter = new FrameSplitter(frameBytesMax, (bytes, start, end) => {
      this.frames.push(Buffer.from(bytes.subarray(start, end)));
    });
    socket.on('data', (chunk: Buffer) => {
      this.#splitter.push(chunk);
      this.#look();
    });
    socket.on('error', () => {});
    socket.on('end', () => this.#closed());
    socket.on('close', () => this.#closed());
  }

  static open(port: number): Promise<RawLink> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port, noDelay: true });
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        resolve(new RawLink(socket));
      });
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  write(bytes: Buffer): void {
    if (!this.#isClosed) this.#socket.write(bytes);
  }

  /** True once `isDone` is or the link is closed; false when neither came in time. */
  until(isDone: () => boolean, timeoutMs: number): Promise<boolean> {
    if (this.#isClosed || isDone()) return Promise.resolve(true);
    return new Promise((resolve) => {
      this.#isDone = isDone;
      const impatience = setTimeout(() => {
        this.#waiting = undefined;
        resolve(false);
      }, timeoutMs);
      this.#waiting = () => {
        clearTimeout(impatience);
        this.#waiting = undefined;
        resolve(true);
      };
    });
  }

  destroy(): void {
    this.#socket.destroy();
    this.#closed();
  }

  #closed(): void {
    this.#isClosed = true;
    this.#socket.destroy();
    this.#waiting?.();
  }

  #look(): void {
    if (this.#waiting !== undefined && this.#isDone()) this.#waiting();
  }
}
