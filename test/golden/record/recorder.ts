/**
 * A TCP proxy that writes down what passes through it, frame by frame.
 *
 *   client  <->  recorder  <->  Apache ZooKeeper           frame   length:int  payload[length]
 *
 * In: a server's port, and the name of what the client is about to do. Out: entries, each a request with its
 * reply, a handshake, or an event, in the order in which the first byte of each passed.
 * A reply belongs to the oldest request of its connection with the same xid that has none yet.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { opName } from './opcodes.ts';

/** All bytes are hex of a payload, without the length before it. null: none came before the connection ended. */
export type Entry = Handshake | Exchange | Event;

export interface Handshake {
  name: string;
  from?: 'raw';
  connectRequest: string;
  connectResponse: string | null;
}

export interface Exchange {
  name: string;
  from?: 'raw';
  op: string;
  code: number;
  request: string;
  reply: string | null;
  /** The server ended the connection after this. */
  closes?: true;
}

export interface Event {
  name: string;
  event: string;
}

const notificationXid = -1;

export class Recorder {
  readonly entries: Entry[] = [];
  /** What the client says it is about to do. */
  name = '';
  readonly #server: Server;
  readonly #clients = new Set<Socket>();
  #isHolding = false;

  private constructor(server: Server, targetPort: number) {
    this.#server = server;
    server.on('connection', (client) => this.#relay(client, targetPort));
  }

  static async start(targetPort: number): Promise<Recorder> {
    const recorder = new Recorder(createServer(), targetPort);
    recorder.#server.listen(0, '127.0.0.1');
    await once(recorder.#server, 'listening');
    return recorder;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Ends every connection, and each new one until `release`. */
  cut(): void {
    this.#isHolding = true;
    for (const client of this.#clients) client.destroy();
  }

  release(): void {
    this.#isHolding = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #relay(client: Socket, targetPort: number): void {
    if (this.#isHolding) {
      client.destroy();
      return;
    }
    const server = connect(targetPort, '127.0.0.1');
    const conversation = new Conversation(this);
    pass(client, server, new FrameSplitter((payload) => conversation.asked(payload)));
    pass(server, client, new FrameSplitter((payload) => conversation.answered(payload)));
    this.#clients.add(client);
    client.on('close', () => this.#clients.delete(client));
  }
}

/** One connection: its handshake, and the requests that still wait. */
class Conversation {
  readonly #recorder: Recorder;
  readonly #waiting: { xid: number; exchange: Exchange }[] = [];
  #handshake: Handshake | undefined;

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
  }

  asked(payload: Buffer): void {
    const { name, entries } = this.#recorder;
    const request = payload.toString('hex');
    if (!this.#handshake) {
      this.#handshake = { name, connectRequest: request, connectResponse: null };
      entries.push(this.#handshake);
      return;
    }
    const code = payload.readInt32BE(4);
    const exchange: Exchange = { name, op: opName(code), code, request, reply: null };
    this.#waiting.push({ xid: payload.readInt32BE(0), exchange });
    entries.push(exchange);
  }

  answered(payload: Buffer): void {
    const reply = payload.toString('hex');
    if (this.#handshake?.connectResponse === null) {
      this.#handshake.connectResponse = reply;
      return;
    }
    const xid = payload.readInt32BE(0);
    if (xid === notificationXid) {
      this.#recorder.entries.push({ name: this.#recorder.name, event: reply });
      return;
    }
    const at = this.#waiting.findIndex((waiting) => waiting.xid === xid);
    const [waiting] = this.#waiting.splice(at, 1);
    if (at < 0 || !waiting) throw new Error(`a reply to no request: ${reply}`);
    waiting.exchange.reply = reply;
  }
}

export class FrameSplitter {
  readonly #onPayload: (payload: Buffer) => void;
  #rest: Buffer = Buffer.alloc(0);

  constructor(onPayload: (payload: Buffer) => void) {
    this.#onPayload = onPayload;
  }

  push(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= 4) {
      const end = 4 + this.#rest.readInt32BE(0);
      if (this.#rest.length < end) return;
      this.#onPayload(this.#rest.subarray(4, end));
      this.#rest = this.#rest.subarray(end);
    }
  }
}

/** Written down first, so that it is there before whoever gets the bytes can act on them. */
function pass(from: Socket, to: Socket, splitter: FrameSplitter): void {
  from.on('data', (chunk) => {
    splitter.push(chunk);
    to.write(chunk);
  });
  from.on('end', () => to.end());
  from.on('error', () => to.destroy());
  from.on('close', () => to.destroy());
}
