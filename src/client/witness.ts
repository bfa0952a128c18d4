/**
 * A second connection to a server, with a session of its own: it shows whether connections to that server last.
 *
 * It asks for nothing but pings, sends no credentials, and ends its session when it is closed. In: an
 * endpoint, and a signal that closes it. Out: whether it still answers, and the moment at which it ended.
 */

import { Reader } from '../jute/index.ts';
import { ops, passwordBytes, specialXids } from '../protocol/index.ts';
import { type Clock, type Deferred, deferred, type Timer } from '../support/index.ts';
import { hello } from './handshake.ts';
import { type Endpoint, type TlsOptions, Transport } from './transport.ts';

export interface WitnessOptions {
  readonly clock: Clock;
  readonly tls?: TlsOptions | undefined;
  readonly frameBytesMax: number;
  /** For each step: to connect, to be welcomed, to have a ping answered. */
  readonly limitMs: number;
  /** Closes it, at whatever step it is: first its session, then its connection. */
  readonly signal: AbortSignal;
}

/** Servers give at least two of their ticks, 4 s by default. A witness that is cut off leaves no more than that behind. */
const sessionTimeoutMs = 1_000;
const goodbyeXid = 1;

export class Witness {
  readonly endpoint: Endpoint;
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #pongs: Deferred<boolean>[] = [];
  readonly #everyMs: number;
  readonly #limitMs: number;
  #timer: Timer | undefined;

  private constructor(transport: Transport, timeoutMs: number, options: WitnessOptions) {
    const { clock, limitMs, signal } = options;
    this.endpoint = transport.endpoint;
    this.#transport = transport;
    this.#clock = clock;
    this.#everyMs = timeoutMs / 3;
    this.#limitMs = limitMs;
    transport.onFrame = (bytes, start, end, borrowed) => {
      if (new Reader().reset(bytes, start, end, borrowed).int() === specialXids.ping) {
        this.#pongs.shift()?.resolve(true);
      }
    };
    const close = () => this.#close();
    signal.addEventListener('abort', close);
    void transport.ended.then(() => {
      signal.removeEventListener('abort', close);
      this.#timer?.cancel();
      for (const pong of this.#pongs.splice(0)) pong.resolve(false);
    });
    this.#stayAlive();
  }

  /** Resolves once the server has begun a session for it and answered a ping. Else rejects, and leaves nothing open. */
  static async open(endpoint: Endpoint, options: WitnessOptions): Promise<Witness> {
    const { clock, tls, frameBytesMax, limitMs, signal } = options;
    const limit = new AbortController();
    const timer = clock.after(limitMs, () => limit.abort(new Error('did not answer')));
    const limited = AbortSignal.any([signal, limit.signal]);
    let transport: Transport;
    try {
      transport = await Transport.open(endpoint, { tls, frameBytesMax, signal: limited });
    } finally {
      timer.cancel();
    }
    try {
      const { timeOut, readOnly } = await hello(
        transport,
        {
          protocolVersion: 0,
          lastZxidSeen: 0n,
          timeOut: sessionTimeoutMs,
          sessionId: 0n,
          passwd: Buffer.alloc(passwordBytes),
          readOnly: false,
        },
        { clock, limitMs, signal },
      );
      if (timeOut <= 0 || readOnly === true) throw new Error('refused a new session');
      const witness = new Witness(transport, timeOut, options);
      if (!(await witness.answers())) throw new Error('did not answer a ping');
      return witness;
    } catch (error) {
      transport.close(error as Error);
      throw error;
    }
  }

  /** Resolves when the connection is over, for whatever reason. */
  get ended(): Promise<unknown> {
    return this.#transport.ended;
  }

  /** Whether a ping that leaves now is answered in time. */
  async answers(): Promise<boolean> {
    if (this.#transport.isOver) return false;
    const pong = deferred<boolean>();
    this.#pongs.push(pong);
    this.#send(specialXids.ping, ops.ping.code);
    const late = this.#clock.after(this.#limitMs, () => pong.resolve(false));
    try {
      return await pong.promise;
    } finally {
      late.cancel();
    }
  }

  #close(): void {
    this.#send(goodbyeXid, ops.closeSession.code);
    this.#transport.closeGently(new Error('no longer needed'));
  }

  /** The session that belongs to it must not expire, as that would close the connection. */
  #stayAlive(): void {
    this.#timer = this.#clock.after(this.#everyMs, () => {
      void this.answers();
      this.#stayAlive();
    });
  }

  #send(xid: number, code: number): void {
    const { writer } = this.#transport;
    const start = writer.beginFrame();
    writer.int(xid);
    writer.int(code);
    writer.endFrame(start);
    this.#transport.flush();
  }
}
