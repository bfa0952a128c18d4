/**
 * A plain link without a stream around it: bytes come from the handle that the server accepted, and go out by
 * its file descriptor. Decides nothing.
 *
 * Node's `Socket` is a dozen objects, and as much work to make as all else that a new session costs; and 5,000
 * of them are most of what the garbage collector then has to move. Few links ever need one. A link gets it when
 * the kernel does not take all that is to be said, or there is something wrong: the stream waits, or meets the
 * same error and tells of it. From then on the link is its stream's.
 *
 *   bare   ── not all was taken ──▶   streamed
 *     └────────────▶   closed   ◀────────┘
 *
 * All links read into one buffer: what a chunk holds is taken out of it before the next is read.
 *
 * Node promises none of what is used here to stay, except that it has been so from 20 to 26: `bareLinks` looks
 * for all of it, and who finds it missing serves sockets as usual.
 */

import { writeSync } from 'node:fs';
import { type Server, Socket } from 'node:net';
import type { Connection, Wire } from './connection.ts';
import { plainAddress, SocketWire, tellOf } from './socket-wire.ts';

const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);

/** What a server accepts, as far as it is used. Numbers that are returned are errors, 0 is none. */
interface Handle {
  readonly fd: number;
  onread: (this: Handle) => void;
  useUserBuffer(buffer: Buffer): void;
  readStart(): number;
  readStop(): number;
  setNoDelay(on: boolean): number;
  getpeername(into: { address?: string; port?: number }): number;
  close(): void;
  /** Ours: whose bytes they are. */
  droverLink?: BareWire | undefined;
}

interface Internals {
  _handle?: { onconnection?: (error: number | undefined, handle?: Handle) => void } | null;
  /** Those that it accepted and that are still there: it closes after them. */
  _connections?: number;
  _emitCloseIfDrained?(): void;
}

/** Where Node says how many bytes were read, or what was wrong. */
interface ReadState {
  readonly streamBaseState: Int32Array;
  readonly kReadBytesOrError: number;
}

interface Bindings {
  binding(name: string): Partial<ReadState>;
}

const handleMethods = ['useUserBuffer', 'readStart', 'readStop', 'setNoDelay', 'getpeername'];

type BareServer = Server & Required<Internals>;

/** Has what the server accepts served as bare links. False where Node is another than we know: nothing is done. */
export function bareLinks(
  server: Server & Internals,
  accept: (wire: Wire) => Connection,
  failed: (error: unknown) => void,
): boolean {
  const listening = server._handle;
  const usual = listening?.onconnection;
  const state = readState();
  const isKnown =
    typeof usual === 'function' &&
    typeof server._connections === 'number' &&
    typeof server._emitCloseIfDrained === 'function' &&
    state !== undefined;
  if (!isKnown) return false;
  const { streamBaseState, kReadBytesOrError } = state;
  function onread(this: Handle): void {
    const bytes = streamBaseState[kReadBytesOrError]!;
    if (bytes > 0) this.droverLink!.received(bytes);
    else if (bytes < 0) this.droverLink!.ended();
  }
  listening!.onconnection = function (error, handle): void {
    if (error || handle === undefined || !isUsable(handle)) {
      usual.call(this, error, handle);
      return;
    }
    const wire = new BareWire(server as BareServer, handle, failed);
    wire.serve(accept(wire), onread);
  };
  return true;
}

function readState(): ReadState | undefined {
  const { noDeprecation = false } = process;
  try {
    process.noDeprecation = true; // who asks to be warned means their own code
    const { streamBaseState, kReadBytesOrError } = (process as unknown as Bindings).binding(
      'stream_wrap',
    );
    if (!(streamBaseState instanceof Int32Array) || kReadBytesOrError === undefined) return;
    return { streamBaseState, kReadBytesOrError };
  } catch {
    return undefined; // it is gone, or not allowed: see Node's permission model
  } finally {
    process.noDeprecation = noDeprecation;
  }
}

/** A descriptor is not to be had on Windows. */
function isUsable(handle: Handle): boolean {
  if (!(handle.fd >= 0) || !('onread' in handle)) return false;
  return handleMethods.every((name) => typeof handle[name as keyof Handle] === 'function');
}

class BareWire implements Wire {
  readonly #server: BareServer;
  readonly #handle: Handle;
  readonly #fd: number;
  readonly #failed: (error: unknown) => void;
  #connection: Connection | undefined;
  /** Since the kernel did not take all of something. */
  #stream: SocketWire | undefined;
  #isClosed = false;
  #isPaused = false;
  readonly address: string;
  readonly port: number;
  readonly secure = false;

  constructor(server: BareServer, handle: Handle, failed: (error: unknown) => void) {
    this.#server = server;
    this.#handle = handle;
    this.#fd = handle.fd;
    this.#failed = failed;
    const peer: { address?: string; port?: number } = {};
    handle.getpeername(peer); // of one who is gone again, there is none
    this.address = plainAddress(peer.address);
    this.port = peer.port ?? 0;
    handle.setNoDelay(true);
    server._connections += 1;
  }

  serve(connection: Connection, onread: (this: Handle) => void): void {
    this.#connection = connection;
    if (this.#isClosed) return; // one too many
    this.#handle.droverLink = this;
    this.#handle.onread = onread;
    this.#handle.useUserBuffer(readBuffer);
    if (!this.#isPaused && this.#handle.readStart() !== 0) this.ended();
  }

  received(bytes: number): void {
    try {
      this.#connection!.receive(readBuffer, bytes);
    } catch (error) {
      this.#failed(error);
    }
  }

  /** The other side has nothing more to say, or is gone. What it asked for and is answered is still told. */
  ended(): void {
    try {
      this.#connection!.flush();
      this.end();
    } catch (error) {
      this.#failed(error);
    }
  }

  get queuedBytes(): number {
    return this.#stream === undefined ? 0 : this.#stream.queuedBytes;
  }

  write(bytes: Buffer, length: number): boolean {
    if (this.#stream !== undefined) return this.#stream.write(bytes, length);
    // Its descriptor may be another's by now.
    if (this.#isClosed) return true;
    let sent = 0;
    try {
      sent = writeSync(this.#fd, bytes, 0, length);
    } catch {
      // It is full, or broken.
    }
    if (sent === length) return true;
    this.#stream = this.#streamed();
    return this.#stream.write(bytes.subarray(sent, length), length - sent);
  }

  #streamed(): SocketWire {
    const handle = this.#handle;
    handle.readStop(); // the stream begins to read, and is told off where somebody does already
    handle.droverLink = undefined;
    const onread = {
      buffer: readBuffer,
      callback: (bytes: number) => {
        this.received(bytes);
        return true;
      },
    };
    const options = { handle, onread } as ConstructorParameters<typeof Socket>[0];
    const socket = new Socket(options);
    (socket as { _server?: Server })._server = this.#server;
    if (this.#isPaused) socket.pause();
    const wire = new SocketWire(socket);
    tellOf(socket, wire, this.#connection!);
    return wire;
  }

  end(): void {
    if (this.#stream !== undefined) this.#stream.end();
    else this.#close(); // all of it was taken
  }

  destroy(): void {
    if (this.#stream !== undefined) this.#stream.destroy();
    else this.#close();
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#handle.close();
    this.#server._connections -= 1;
    this.#server._emitCloseIfDrained();
    this.#connection?.wireClosed();
  }

  pause(): void {
    this.#isPaused = true;
    if (this.#stream !== undefined) this.#stream.pause();
    else if (!this.#isClosed) this.#handle.readStop();
  }

  resume(): void {
    this.#isPaused = false;
    if (this.#stream !== undefined) this.#stream.resume();
    else if (!this.#isClosed && this.#handle.readStart() !== 0) this.ended();
  }
}
