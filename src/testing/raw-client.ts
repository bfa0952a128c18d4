/**
 * A client with no opinions, for tests of what is said on the wire: frames go out as they are given,
 * frames come in in the order in which they were sent. It sets no watches again, pings nobody and
 * retries nothing.
 */

import { connect as dial, type Socket } from 'node:net';
import { encode, FrameSplitter, ProtocolError, Reader, type Type } from '../jute/index.ts';
import {
  ConnectRequest,
  ConnectResponse,
  eventTypeNames,
  type OpName,
  ops,
  type RequestOf,
  type ResponseOf,
  WatcherEvent,
} from '../protocol/index.ts';

export interface RawReply {
  readonly xid: number;
  readonly zxid: bigint;
  readonly err: number;
  readonly body: Buffer;
}

/** What came, in order: a reply's xid, or an event as `created /a`. */
export type Heard = number | string;

const frameBytesMax = 64 * 1024 * 1024;

export class RawClient {
  readonly #socket: Socket;
  readonly #replies: RawReply[] = [];
  readonly #waiting = new Set<() => void>();
  #greeting: Buffer | undefined;
  #xid = 0;
  isClosed = false;
  sessionId = 0n;
  passwd: Buffer | null = Buffer.alloc(16);
  timeOut = 0;
  /** What came and is no frame: the answer to four letters. */
  text = '';
  readonly heard: Heard[] = [];
  readonly eventZxids: bigint[] = [];

  private constructor(socket: Socket) {
    this.#socket = socket;
    const splitter = new FrameSplitter(frameBytesMax, (bytes, start, end) =>
      this.#take(Buffer.from(bytes.subarray(start, end))),
    );
    socket.on('data', (chunk: Buffer) => {
      try {
        splitter.push(chunk);
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        this.text += chunk.toString('latin1');
      }
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      this.isClosed = true;
      this.#wake();
    });
  }

  /** A link without a handshake. */
  static async dial(port: number): Promise<RawClient> {
    const socket = dial({ port, host: '127.0.0.1', noDelay: true });
    const client = new RawClient(socket);
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    return client;
  }

  /** A link with a session, or with a refusal: then `sessionId` is 0. */
  static async connect(port: number, request: Partial<ConnectRequest> = {}): Promise<RawClient> {
    const client = await RawClient.dial(port);
    await client.shakeHands(request);
    return client;
  }

  /** The answer's length in bytes, or 0 when there was none but the end of the link. */
  async shakeHands(request: Partial<ConnectRequest> = {}): Promise<number> {
    this.frame(
      encode(ConnectRequest, {
        protocolVersion: 0,
        lastZxidSeen: 0n,
        timeOut: 10_000,
        sessionId: 0n,
        passwd: Buffer.alloc(16),
        readOnly: false,
        ...request,
      }),
    );
    await this.until(() => this.#greeting !== undefined || this.isClosed);
    if (this.#greeting === undefined) return 0;
    const answer = ConnectResponse.read(new Reader(this.#greeting));
    this.sessionId = answer.sessionId;
    this.passwd = answer.passwd;
    this.timeOut = answer.timeOut;
    return this.#greeting.length;
  }

  write(bytes: Uint8Array): void {
    this.#socket.write(bytes);
  }

  /** All that is sent meanwhile leaves in one write. */
  atOnce<T>(send: () => T): T {
    this.#socket.cork();
    try {
      return send();
    } finally {
      this.#socket.uncork();
    }
  }

  frame(payload: Uint8Array): void {
    const length = Buffer.alloc(4);
    length.writeInt32BE(payload.length);
    this.write(Buffer.concat([length, payload]));
  }

  /** Sends and does not wait. Returns the xid. */
  send<N extends OpName>(op: N, request: RequestOf<N>, xid = ++this.#xid): number {
    return this.sendRaw(ops[op].code, encode(ops[op].request as Type<unknown>, request), xid);
  }

  sendRaw(code: number, body: Buffer, xid = ++this.#xid): number {
    const head = Buffer.alloc(8);
    head.writeInt32BE(xid);
    head.writeInt32BE(code, 4);
    this.frame(Buffer.concat([head, body]));
    return xid;
  }

  async reply(xid: number): Promise<RawReply> {
    const find = () => this.#replies.find((reply) => reply.xid === xid);
    await this.until(() => find() !== undefined || this.isClosed);
    const found = find();
    if (found === undefined) throw new Error(`the link ended before a reply to ${xid}`);
    this.#replies.splice(this.#replies.indexOf(found), 1);
    return found;
  }

  /** Sends, waits, and gives the error's number: 0 when there is none. */
  async err<N extends OpName>(op: N, request: RequestOf<N>, xid?: number): Promise<number> {
    return (await this.reply(this.send(op, request, xid))).err;
  }

  /** Sends, waits, and decodes. An error is thrown as its number. */
  async ask<N extends OpName>(op: N, request: RequestOf<N>, xid?: number): Promise<ResponseOf<N>> {
    const { err, body } = await this.reply(this.send(op, request, xid));
    if (err !== 0) throw new Error(`${op}: ${err}`);
    return (ops[op].response as Type<unknown>).read(new Reader(body)) as ResponseOf<N>;
  }

  /** Everything that was sent before it is here once this resolves. */
  async ping(): Promise<RawReply> {
    return this.reply(this.send('ping', {}, -2));
  }

  /** The events so far, and forgets them. */
  async events(): Promise<Heard[]> {
    await this.ping();
    return this.heard.splice(0).filter((entry) => typeof entry === 'string');
  }

  /** Resolves when the other side has closed. */
  async ended(): Promise<void> {
    await this.until(() => this.isClosed);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  close(): void {
    this.#socket.destroy();
  }

  async until(isDone: () => boolean): Promise<void> {
    while (!isDone()) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  #take(frame: Buffer): void {
    if (this.#greeting === undefined) this.#greeting = frame;
    else this.#message(new Reader(frame), frame);
    this.#wake();
  }

  #message(reader: Reader, frame: Buffer): void {
    const xid = reader.int();
    const zxid = reader.long();
    const err = reader.int();
    if (xid !== -1) {
      this.heard.push(xid);
      this.#replies.push({ xid, zxid, err, body: frame.subarray(16) });
      return;
    }
    const event = WatcherEvent.read(reader);
    this.heard.push(`${eventTypeNames.get(event.type)} ${event.path}`);
    this.eventZxids.push(zxid);
  }
}
