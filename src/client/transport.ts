/**
 * One TCP or TLS connection to one server: frames out, frames in.
 *
 * Whatever is written during a tick leaves in one socket write at its end. What comes in is cut into
 * frames and handed to `onFrame` as it arrives. It ends once, with the reason, through `ended`.
 */

import net from 'node:net';
import tls from 'node:tls';
import { type FrameSink, FrameSplitter, Writer } from '../jute/index.ts';
import { frameOverheadBytes } from '../protocol/index.ts';
import { deferred } from '../support/index.ts';
import { type Host, hostText } from './connection-string.ts';

/** A server's name and one of the addresses it resolved to. */
export interface Endpoint {
  readonly host: Host;
  readonly address: string;
}

export type TlsOptions = tls.ConnectionOptions;

/** What is written into shared memory is copied out when small, and handed over when large. */
const copyBelowBytes = 4096;

const inletBytes = 65_536;

/** One piece of memory that a socket reads into again and again, in place of a new one each time. */
class Inlet {
  readonly buffer = Buffer.allocUnsafeSlow(inletBytes);
  received: (chunk: Buffer) => void = () => {};

  readonly callback = (bytes: number): boolean => {
    this.received(this.buffer.subarray(0, bytes));
    return true; // goes on reading
  };
}

class ClosedByPeer extends Error {}

/** Whether the other side ended the connection. It is reset where the other side had not read everything. */
export function isByPeer(reason: Error): boolean {
  const { code } = reason as NodeJS.ErrnoException;
  return reason instanceof ClosedByPeer || code === 'ECONNRESET' || code === 'EPIPE';
}

export class Transport {
  readonly endpoint: Endpoint;
  /** Settles when the connection is over, never rejects: the reason it ended for. */
  readonly ended: Promise<Error>;
  readonly writer = new Writer(copyBelowBytes);
  /** Where frames go; whoever reads next sets it. */
  onFrame: FrameSink = () => {};
  /** Told of each chunk before its frames are. */
  onHeard: () => void = () => {};
  /** Told of each chunk once its frames were told of. */
  onTaken: () => void = () => {};
  readonly #socket: net.Socket;
  readonly #end = deferred<Error>();
  readonly #splitter: FrameSplitter;
  #flushAsked = false;
  #isOver = false;

  private constructor(
    endpoint: Endpoint,
    socket: net.Socket,
    frameBytesMax: number,
    inlet: Inlet | undefined,
  ) {
    this.endpoint = endpoint;
    this.#socket = socket;
    this.ended = this.#end.promise;
    // A reply has more around the same data than the request that wrote it: the Stat.
    const replyBytesMax = frameBytesMax + frameOverheadBytes;
    this.#splitter = new FrameSplitter(replyBytesMax, (bytes, start, end, borrowed) =>
      this.onFrame(bytes, start, end, borrowed),
    );
    socket.setNoDelay(true);
    socket.on('error', (error) => this.close(error));
    socket.on('close', () =>
      this.close(new ClosedByPeer(`${hostText(endpoint.host)} closed the connection`)),
    );
    if (inlet === undefined) socket.on('data', (chunk) => this.#received(chunk));
    else inlet.received = (chunk) => this.#received(chunk);
  }

  /** Opens a connection, or rejects with why not. TLS: the certificate and its name are verified. */
  static open(
    endpoint: Endpoint,
    options: { tls?: TlsOptions | undefined; frameBytesMax: number; signal: AbortSignal },
  ): Promise<Transport> {
    const { host, address } = endpoint;
    const { signal } = options;
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const to = { host: address, port: host.port };
      // Without a name to check against, TLS checks the address; both are what the caller asked for.
      const named = net.isIP(host.name) ? {} : { servername: host.name };
      const inlet = options.tls ? undefined : new Inlet();
      const socket = options.tls
        ? // Said outright, or NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment would undo it.
          tls.connect({ rejectUnauthorized: true, ...named, ...options.tls, ...to })
        : net.connect({ ...to, onread: inlet! });
      const failed = (error: unknown) => {
        socket.destroy();
        settle();
        reject(error);
      };
      const aborted = () => failed(signal.reason);
      const closed = () => failed(new Error('closed while connecting'));
      const opened = () => {
        settle();
        resolve(new Transport(endpoint, socket, options.frameBytesMax, inlet));
      };
      const settle = () => {
        signal.removeEventListener('abort', aborted);
        socket.off('error', failed).off('close', closed);
        // A socket may still fail after it was given up; without a listener that ends the process.
        socket.on('error', () => {});
      };
      signal.addEventListener('abort', aborted);
      socket.on('error', failed).on('close', closed);
      socket.once(options.tls ? 'secureConnect' : 'connect', opened);
    });
  }

  get localAddress(): string {
    return `${this.#socket.localAddress}:${this.#socket.localPort}`;
  }

  /** Sends what `writer` holds, once the code that runs now is done. */
  flushSoon(): void {
    if (this.#flushAsked || this.#isOver) return;
    this.#flushAsked = true;
    process.nextTick(() => this.flush());
  }

  flush(): void {
    this.#flushAsked = false;
    const { length } = this.writer;
    if (length === 0 || this.#isOver) return;
    if (length < copyBelowBytes) {
      this.#socket.write(Buffer.from(this.writer.written()));
      this.writer.truncate(0);
    } else {
      this.#socket.write(this.writer.detach(length));
    }
  }

  /** It is closed: nothing that is written now leaves. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Bytes that the kernel has not taken yet. */
  get unsentBytes(): number {
    return this.#socket.writableLength;
  }

  close(reason: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#socket.destroy();
    this.#end.resolve(reason);
  }

  /** Lets what was written go out, then closes. */
  closeGently(reason: Error): void {
    if (this.#isOver) return;
    this.flush();
    this.#isOver = true;
    // A peer that takes no more bytes would never let it end.
    if (this.#socket.writableLength > 0) this.#socket.destroy();
    else this.#socket.end(() => this.#socket.destroy());
    this.#end.resolve(reason);
  }

  #received(chunk: Buffer): void {
    if (this.#isOver) return;
    try {
      this.onHeard();
      this.#splitter.push(chunk);
      this.onTaken();
    } catch (error) {
      this.close(error instanceof Error ? error : new Error(String(error)));
    }
  }
}
