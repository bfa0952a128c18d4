/**
 * One link to a server with the record of what was said on it, and the ways to say something.
 *
 * In: handshakes and calls. Out: `said`, every frame that came, each with the command it answers if it
 * answers one, and the end of the link if the server ended it. A link whose server is silent is closed.
 */

import { Reader, Writer } from '../../src/jute/index.ts';
import { ConnectRequest, ConnectResponse, ops, specialXids } from '../../src/protocol/index.ts';
import type { RawLink } from './raw-link.ts';
import type { Call } from './script.ts';

/** Nothing takes a server that long. One that did not answer by then never will. */
export const silenceMs = 5_000;

export type Said =
  | { readonly kind: 'welcome'; readonly frame: Buffer; readonly command: number }
  | { readonly kind: 'event'; readonly frame: Buffer; readonly command: number }
  | { readonly kind: 'reply'; readonly frame: Buffer; readonly command: number; readonly to: Call }
  | { readonly kind: 'closed' | 'silence' | 'open'; readonly command: number };

export interface Session {
  readonly id: bigint;
  readonly passwd: Buffer;
  isOver: boolean;
}

interface Asked {
  readonly to: Call;
  readonly command: number;
}

/** A link with the record of what was said on it. */
export class Line {
  readonly raw: RawLink;
  readonly said: Said[] = [];
  readonly #asked: Asked[] = [];
  #read = 0;
  #counted = 0;
  #replies = 0;
  #expected = 0;
  #isWelcomed = false;
  #hasEnded = false;
  xid = 0;
  lastZxid = 0n;
  session: Session | undefined;
  lastCommand = -1;

  constructor(raw: RawLink) {
    this.raw = raw;
  }

  get isUsable(): boolean {
    return !this.raw.isClosed && !this.#hasEnded;
  }

  ask(asked: Asked): void {
    this.#asked.push(asked);
    this.#expected += 1;
    this.lastCommand = asked.command;
  }

  expectWelcome(command: number): void {
    this.#expected += 1;
    this.lastCommand = command;
  }

  /** Until as many replies are there as were asked for, or the link is closed. */
  async settled(timeoutMs = silenceMs): Promise<void> {
    const isThere = await this.raw.until(() => this.#count() >= this.#expected, timeoutMs);
    this.take();
    if (!isThere) {
      this.said.push({ kind: 'silence', command: this.lastCommand });
      this.raw.destroy();
      this.#hasEnded = true;
    }
  }

  /** Whether the server has closed it: a ping is answered, or it is closed. */
  async probe(command: number): Promise<void> {
    const writer = new Writer();
    writeFrame(writer, (w) => {
      w.int(specialXids.ping);
      w.int(ops.ping.code);
    });
    this.ask({ to: { kind: 'call', slot: -1, op: 'ping', request: null }, command });
    this.raw.write(writer.detach());
    await this.settled();
  }

  #count(): number {
    const { frames } = this.raw;
    for (; this.#counted < frames.length; this.#counted++) {
      if (this.#counted === 0 || frames[this.#counted]!.readInt32BE(0) !== -1) this.#replies += 1;
    }
    return this.#replies;
  }

  take(): void {
    const { frames } = this.raw;
    for (; this.#read < frames.length; this.#read++) {
      const frame = frames[this.#read]!;
      const command = this.lastCommand;
      if (!this.#isWelcomed) {
        this.#isWelcomed = true;
        this.said.push({ kind: 'welcome', frame, command });
      } else if (frame.readInt32BE(0) === specialXids.notification) {
        this.said.push({ kind: 'event', frame, command });
      } else {
        const asked = this.#asked.shift();
        const zxid = frame.readBigInt64BE(4);
        if (zxid > this.lastZxid) this.lastZxid = zxid;
        if (asked === undefined) this.said.push({ kind: 'event', frame, command });
        else this.said.push({ kind: 'reply', frame, ...asked });
      }
    }
    if (this.raw.isClosed && !this.#hasEnded) {
      this.#hasEnded = true;
      this.said.push({ kind: 'closed', command: this.lastCommand });
    }
  }

  drop(): void {
    this.take();
    this.#hasEnded = true;
    this.raw.destroy();
  }
}

function writeFrame(writer: Writer, write: (writer: Writer) => void): void {
  const start = writer.beginFrame();
  write(writer);
  writer.endFrame(start);
}

/** Not more at once than a server takes without stopping to read. */
const burst = 200;

export async function ask(line: Line, calls: readonly Call[]): Promise<void> {
  for (let at = 0; at < calls.length; at += burst) {
    send(
      line,
      calls.slice(at, at + burst).map((call) => [call, -1]),
    );
    await line.settled();
  }
}

export function greet(
  line: Line,
  request: Omit<ConnectRequest, 'protocolVersion' | 'readOnly'> & { old?: boolean },
  command: number,
): void {
  const writer = new Writer();
  const { old, ...fields } = request;
  writeFrame(writer, (w) =>
    ConnectRequest.write(w, {
      protocolVersion: 0,
      ...fields,
      readOnly: old ? undefined : false,
    }),
  );
  line.expectWelcome(command);
  line.raw.write(writer.detach());
}

export function send(line: Line, calls: readonly (readonly [call: Call, command: number])[]): void {
  const writer = new Writer(4096);
  for (const [call, command] of calls) {
    const xid = call.xid ?? ++line.xid;
    writeFrame(writer, (w) => {
      w.int(xid);
      w.int(typeof call.op === 'number' ? call.op : ops[call.op].code);
      const start = w.length;
      if (call.hex !== undefined) w.raw(Buffer.from(call.hex, 'hex'));
      else if (call.request !== null && typeof call.op !== 'number') {
        (ops[call.op].request.write as (w: Writer, value: unknown) => void)(w, call.request);
      }
      if (call.poke !== undefined && w.length > start) {
        w.memory[start + (call.poke.at % (w.length - start))] = call.poke.byte;
      }
      if (call.cut === undefined) return;
      if (call.cut >= 0) w.truncate(Math.max(start, w.length - call.cut));
      else w.raw(Buffer.alloc(-call.cut, 7));
    });
    line.ask({ to: call, command });
  }
  line.raw.write(writer.detach());
}

export function decodeWelcome(frame: Buffer): ConnectResponse {
  return ConnectResponse.read(new Reader(frame));
}
