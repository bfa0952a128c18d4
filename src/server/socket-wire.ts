/** A socket of Node's as a connection sees it. Decides nothing. */

import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Connection, Wire } from './connection.ts';

/** What each write that waits in a stream takes beside its bytes (measured on Node 20): of small events, most of it. */
const queuedWriteBytes = 160;

/** An IPv4 client of a socket that listens on `::` is still an IPv4 client. */
export function plainAddress(address = ''): string {
  return address.replace(/^::ffff:(?=\d+\.)/, '');
}

export const addressOf = ({ remoteAddress }: Socket) => plainAddress(remoteAddress);

export class SocketWire implements Wire {
  readonly #socket: Socket & {
    readonly _writableState?: { readonly bufferedRequestCount?: number };
  };
  readonly address: string;
  readonly port: number;
  readonly secure: boolean;
  /** All that was queued is gone. A stream tells only where it held more than it likes ('drain'). */
  onDrained: () => void = () => {};

  constructor(socket: Socket) {
    this.#socket = socket;
    this.secure = socket instanceof TLSSocket;
    this.address = addressOf(socket);
    this.port = socket.remotePort ?? 0;
  }

  get queuedBytes(): number {
    const writes = this.#socket._writableState?.bufferedRequestCount ?? 0;
    return this.#socket.writableLength + queuedWriteBytes * writes;
  }

  write(bytes: Buffer, length: number): boolean {
    const socket = this.#socket;
    if (!socket.writable) return true;
    socket.write(bytes.subarray(0, length), this.#written);
    // A plain socket that took all of it at once is done with the memory; TLS may keep it for later.
    return !this.secure && socket.writableLength === 0;
  }

  readonly #written = (): void => {
    if (this.#socket.writableLength === 0) this.onDrained();
  };

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

/** What becomes of the socket, to the connection on it. */
export function tellOf(socket: Socket, wire: SocketWire, connection: Connection): void {
  wire.onDrained = () => connection.drained();
  socket.on('close', () => connection.wireClosed());
  // A reset is followed by 'close'; there is nothing else to do about it.
  socket.on('error', () => {});
}
