/**
 * A link that asks for a session and for nothing else, as lean as Node allows: no stream, no promise, and the
 * request is encoded once for all. What it takes of a small machine is missing to the server, and making a
 * `Socket` takes as long as a server does to make a session.
 *
 *   dialling  ── connected ──▶   greeting   ── a reply ──▶   open   ── close() ──▶   closing   ── the end ──▶   gone
 *
 * It uses what Node keeps to itself, as `src/server/bare-wire.ts` does from the other side.
 */

import { writeSync } from 'node:fs';
import { Writer } from '../../src/jute/index.ts';
import { ConnectRequest, passwordBytes } from '../../src/protocol/index.ts';
import { append } from './requests.ts';

const sessionTimeoutMs = 30_000;
const inlet = Buffer.allocUnsafeSlow(65_536);

interface Handle {
  readonly fd: number;
  onread: (this: Handle) => void;
  useUserBuffer(buffer: Buffer): void;
  readStart(): number;
  setNoDelay(on: boolean): number;
  connect(request: Dial, address: string, port: number): number;
  close(): void;
  session?: BareSession;
}

interface Dial {
  oncomplete: (this: Dial, status: number) => void;
  session?: BareSession;
}

interface TcpBinding {
  readonly TCP: { new (type: number): Handle };
  readonly TCPConnectWrap: { new (): Dial };
  readonly constants: { readonly SOCKET: number };
}

interface StreamBinding {
  readonly streamBaseState: Int32Array;
  readonly kReadBytesOrError: number;
}

process.noDeprecation = true;
const { binding } = process as unknown as { binding(name: string): unknown };
const { TCP, TCPConnectWrap, constants } = binding('tcp_wrap') as TcpBinding;
const { streamBaseState, kReadBytesOrError } = binding('stream_wrap') as StreamBinding;

const greeting = encoded((writer) => {
  const start = writer.beginFrame();
  ConnectRequest.write(writer, {
    protocolVersion: 0,
    lastZxidSeen: 0n,
    timeOut: sessionTimeoutMs,
    sessionId: 0n,
    passwd: Buffer.alloc(passwordBytes),
    readOnly: false,
  });
  writer.endFrame(start);
});
const farewell = encoded((writer) => append(writer, 1, 'closeSession', {}));

function encoded(write: (writer: Writer) => void): Buffer {
  const writer = new Writer(256);
  write(writer);
  return Buffer.from(writer.memory.subarray(0, writer.length));
}

export interface BareEnds {
  opened(): void;
  closed(): void;
  failed(error: Error): void;
}

export class BareSession {
  readonly #ends: BareEnds;
  readonly #handle = new TCP(constants.SOCKET);
  #isOpen = false;
  #isClosing = false;

  constructor(port: number, ends: BareEnds) {
    this.#ends = ends;
    this.#handle.session = this;
    const dial = new TCPConnectWrap();
    dial.session = this;
    dial.oncomplete = dialled;
    const fault = this.#handle.connect(dial, '127.0.0.1', port);
    if (fault !== 0) ends.failed(new Error(`a link could not be dialled: ${fault}`));
  }

  dialled(status: number): void {
    if (status !== 0) {
      this.#ends.failed(new Error(`a link could not be dialled: ${status}`));
      return;
    }
    const handle = this.#handle;
    handle.setNoDelay(true);
    handle.onread = received;
    handle.useUserBuffer(inlet);
    handle.readStart();
    writeSync(handle.fd, greeting);
  }

  /** The answer is 41 bytes, and comes whole. */
  received(bytes: number): void {
    if (bytes < 0) {
      this.#handle.close();
      if (this.#isClosing) this.#ends.closed();
      else this.#ends.failed(new Error('the server closed the connection'));
    } else if (!this.#isOpen) {
      this.#isOpen = true;
      this.#ends.opened();
    }
  }

  close(): void {
    this.#isClosing = true;
    writeSync(this.#handle.fd, farewell);
  }
}

function dialled(this: Dial, status: number): void {
  this.session!.dialled(status);
}

function received(this: Handle): void {
  const bytes = streamBaseState[kReadBytesOrError]!;
  if (bytes !== 0) this.session!.received(bytes);
}
