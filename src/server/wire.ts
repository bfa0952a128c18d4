/**
 * Sockets, as connections see them. Decides nothing.
 *
 * A plain socket reads into one buffer that all of them share: what a chunk holds is taken out of it
 * before the next is read. Node offers that (`onread`) to who makes a socket, not to who accepts one,
 * so sockets are made here, around the handles that a server accepts; where that is not possible they are
 * read as usual.
 *
 * A plain socket that has nothing queued is written to past its stream, by its file descriptor: 6.7 us a
 * send in place of 7.2, of which the kernel has most. What the kernel does not take at once, and whatever
 * is wrong, is the stream's.
 */

import { writeSync } from 'node:fs';
import { type Server, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Id } from '../protocol/index.ts';
import { subjectOf } from './certificate-subject.ts';
import type { Connection, Wire } from './connection.ts';

const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);

/** What Node does not promise to keep. Where it is another, sockets are accepted as usual. */
interface Internals {
  _handle?: { onconnection?: (error: number | undefined, handle?: Handle) => void } | null;
  /** Those that it accepted and that are still there: it closes after them. */
  _connections?: number;
}

interface Handle {
  setNoDelay?(on: boolean): void;
  /** -1 where there is none, as on Windows. */
  readonly fd?: number;
}

/** What each write that waits in a stream takes beside its bytes (measured on Node 20): of small events, most of it. */
const queuedWriteBytes = 160;

/** An IPv4 client of a socket that listens on `::` is still an IPv4 client. */
export function addressOf({ remoteAddress = '' }: Socket): string {
  return remoteAddress.replace(/^::ffff:(?=\d+\.)/, '');
}

class SocketWire implements Wire {
  readonly #socket: Socket & {
    readonly _handle?: Handle | null;
    readonly _writableState?: { readonly bufferedRequestCount?: number };
  };
  readonly #handle: Handle | null | undefined;
  /** -1 where only the stream can be written to. */
  readonly #fd: number;
  /** The stream had something to send when it was last asked: what follows goes behind it. */
  #isQueued = false;
  readonly address: string;
  readonly port: number;
  readonly secure: boolean;

  constructor(socket: Socket, secure: boolean) {
    this.#socket = socket;
    this.#handle = this.#socket._handle;
    this.#fd = (secure ? undefined : this.#handle?.fd) ?? -1;
    this.secure = secure;
    this.address = addressOf(socket);
    this.port = socket.remotePort ?? 0;
  }

  get queuedBytes(): number {
    const writes = this.#socket._writableState?.bufferedRequestCount ?? 0;
    return this.#socket.writableLength + queuedWriteBytes * writes;
  }

  write(bytes: Buffer, length: number): boolean {
    const sent = this.#fd >= 0 && !this.#isQueued ? this.#send(bytes, length) : 0;
    if (sent === length) return true;
    const socket = this.#socket;
    if (!socket.writable) return true;
    socket.write(bytes.subarray(sent, length));
    this.#isQueued = socket.writableLength > 0;
    // A plain socket that took all of it at once is done with the memory; TLS may keep it for later.
    return !this.secure && !this.#isQueued;
  }

  /** How much the kernel took. */
  #send(bytes: Buffer, length: number): number {
    // A descriptor that was closed may be another's by now.
    if (this.#socket._handle !== this.#handle) return 0;
    try {
      return writeSync(this.#fd, bytes, 0, length);
    } catch {
      return 0; // it is full, or broken: the stream waits, or meets the same error and tells of it
    }
  }

  end(): void {
    if (this.#socket.destroyed) return;
    this.#socket.end();
    // Whoever never closes its side would keep the link: what was said is said.
    this.#socket.destroySoon();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }
}

function connectWire(
  socket: Socket,
  secure: boolean,
  accept: (wire: Wire) => Connection,
): Connection {
  const connection = accept(new SocketWire(socket, secure));
  socket.on('drain', () => connection.drained());
  socket.on('close', () => connection.wireClosed());
  // A reset is followed by 'close'; there is nothing else to do about it.
  socket.on('error', () => {});
  return connection;
}

/** Serves what a server accepts that listens, was made with `noDelay`, and has no other listener. */
export function servePlain(
  server: Server & Internals,
  accept: (wire: Wire) => Connection,
  failed: (error: unknown) => void,
): void {
  const serve = (socket: Socket): ((chunk: Buffer, end?: number) => void) => {
    const connection = connectWire(socket, false, accept);
    return (chunk, end) => {
      try {
        connection.receive(chunk, end);
      } catch (error) {
        failed(error);
      }
    };
  };
  server.on('connection', (socket) => {
    const take = serve(socket);
    socket.on('data', (chunk: Buffer) => take(chunk));
  });
  const listening = server._handle;
  const usual = listening?.onconnection;
  if (!listening || typeof usual !== 'function' || typeof server._connections !== 'number') return;
  listening.onconnection = function (error, handle): void {
    if (error || handle === undefined) {
      usual.call(this, error, handle);
      return;
    }
    handle.setNoDelay?.(true);
    let take: ReturnType<typeof serve> | undefined;
    const options = {
      handle,
      onread: {
        buffer: readBuffer,
        callback: (length: number) => {
          take?.(readBuffer, length);
          return true;
        },
      },
    };
    const socket = new Socket(options as ConstructorParameters<typeof Socket>[0]);
    server._connections! += 1;
    (socket as { _server?: Server })._server = server;
    take = serve(socket);
  };
}

export function serveTls(
  socket: TLSSocket,
  accept: (wire: Wire, ids: readonly Id[]) => Connection,
  failed: (error: unknown) => void,
): void {
  const connection = connectWire(socket, true, (wire) => accept(wire, certificateIds(socket)));
  socket.setNoDelay(true);
  socket.on('data', (chunk: Buffer) => {
    try {
      connection.receive(chunk);
    } catch (error) {
      failed(error);
    }
  });
}

/** Who proved a certificate has its subject as an id. */
function certificateIds(socket: TLSSocket): readonly Id[] {
  if (!socket.authorized) return [];
  const certificate = socket.getPeerX509Certificate();
  return certificate === undefined ? [] : [{ scheme: 'x509', id: subjectOf(certificate.raw) }];
}
