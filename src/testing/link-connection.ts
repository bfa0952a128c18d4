/**
 * One connection through a link: two sockets and a flow of bytes each way.
 *
 * A flow is a queue of chunks that is emptied from the front, as far as the link's rules let it at that
 * moment. Nothing is lost or reordered unless a rule says so. A peer's end or reset stands in the same
 * queue. Once cut, a connection passes nothing more, and no timer of it is left.
 */

import type { Socket } from 'node:net';
import { clearImmediate, setImmediate } from 'node:timers';
import { FrameSplitter } from '../jute/index.ts';
import type { Timer } from '../support/index.ts';
import { type Direction, directions, type FrameHook, type Rules } from './link-rules.ts';

/** Far above what a peer takes. Longer, and the stream is not one of frames: TLS, a four-letter word. */
const frameBytesMax = 16 * 1024 * 1024;
/** Above this, a flow that may not pass on stops taking in. */
const queueBytesMax = 256 * 1024;

export class Connection {
  readonly number: number;
  readonly rules: Rules;
  readonly #sockets: Readonly<Record<Direction, Socket>>;
  readonly #flows: readonly Flow[];
  #isCut = false;

  constructor(number: number, client: Socket, server: Socket, rules: Rules) {
    this.number = number;
    this.rules = rules;
    this.#sockets = { toServer: server, toClient: client };
    this.#flows = [
      new Flow(this, 'toServer', client, server),
      new Flow(this, 'toClient', server, client),
    ];
    let open = 2;
    for (const socket of [client, server]) {
      socket.on('close', () => {
        open -= 1;
        if (open === 0) rules.gone();
      });
    }
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  go(): void {
    for (const flow of this.#flows) flow.go();
  }

  /** `after`: the way in which what has been passed already must still arrive. */
  cut({ reset = false, after }: { reset?: boolean; after?: Direction } = {}): void {
    if (this.#isCut) return;
    this.#isCut = true;
    for (const flow of this.#flows) flow.stop();
    for (const direction of directions) {
      const socket = this.#sockets[direction];
      if (direction === after) socket.write('', () => socket.destroy());
      else if (reset) socket.resetAndDestroy();
      else socket.destroy();
    }
    this.rules.wasCut();
  }
}

interface Item {
  readonly what: Buffer | 'end' | 'gone';
  readonly cameMs: number;
}

/** One direction of one connection. */
class Flow {
  readonly #connection: Connection;
  readonly #direction: Direction;
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #queue: Item[] = [];
  #queuedBytes = 0;
  #timer: Timer | undefined;
  #immediate: NodeJS.Immediate | undefined;
  /** Undefined when the stream has turned out to be none of frames. */
  #splitter: FrameSplitter | undefined;
  /** Whole frames of the chunk at hand, prefix included. */
  #frames: Buffer[] = [];
  #frameIndex = 0;
  /** How much of the frame begun has been passed. What has not waits in the splitter for the rest. */
  #passedOfFrame = 0;

  constructor(connection: Connection, direction: Direction, from: Socket, to: Socket) {
    this.#connection = connection;
    this.#direction = direction;
    this.#from = from;
    this.#to = to;
    this.#splitter = new FrameSplitter(frameBytesMax, (bytes, start, end) => {
      this.#frames.push(framed(bytes.subarray(start, end)));
    });
    from.on('data', (bytes: Buffer) => this.#enqueue(bytes));
    from.on('end', () => this.#enqueue('end'));
    from.on('close', () => this.#enqueue('gone'));
    to.on('drain', () => this.go());
  }

  stop(): void {
    this.#queue.length = 0;
    this.#timer?.cancel();
    if (this.#immediate !== undefined) clearImmediate(this.#immediate);
  }

  /** Passes what may pass now, and sees to it that it is called again when more may. */
  go(): void {
    const { rules } = this.#connection;
    this.#timer?.cancel();
    while (this.#queue.length > 0 && this.#immediate === undefined) {
      const head = this.#queue[0]!;
      if (rules.isBlocked(this.#direction) || this.#to.writableNeedDrain) return;
      const waitMs = head.cameMs + rules.delayMs() - rules.clock.nowMs();
      if (waitMs > 0) {
        this.#timer = rules.clock.after(waitMs, () => this.go());
        return;
      }
      this.#queue.shift();
      this.#take(head);
    }
  }

  #enqueue(what: Item['what']): void {
    if (this.#connection.isCut) return;
    this.#queue.push({ what, cameMs: this.#connection.rules.clock.nowMs() });
    if (typeof what === 'object') this.#queuedBytes += what.length;
    if (this.#queuedBytes > queueBytesMax) this.#from.pause();
    this.go();
  }

  #take({ what, cameMs }: Item): void {
    if (what === 'end') this.#to.end();
    else if (what === 'gone') this.#to.destroySoon();
    else {
      const chunkBytes = this.#connection.rules.chunkBytes();
      if (what.length > chunkBytes) {
        this.#queue.unshift({ what: what.subarray(chunkBytes), cameMs });
      }
      if (Number.isFinite(chunkBytes)) this.#goNextTurn();
      const chunk = what.subarray(0, chunkBytes);
      this.#queuedBytes -= chunk.length;
      if (this.#queuedBytes <= queueBytesMax) this.#from.resume();
      this.#feed(chunk);
    }
  }

  /**
   * Once the kernel has had the last chunk and a reader in this process could have had it: sockets are
   * read between two turns of immediates, and the first of them is that of the turn we are in.
   */
  #goNextTurn(turns = 2): void {
    this.#immediate = setImmediate(() => {
      const isOnItsWay = this.#to.writableLength > 0 && !this.#to.destroyed;
      if (turns > 1 || isOnItsWay) return this.#goNextTurn(turns - 1);
      this.#immediate = undefined;
      this.go();
    });
  }

  #feed(chunk: Buffer): void {
    const { rules } = this.#connection;
    if (this.#splitter === undefined) {
      this.#pass(chunk);
      return;
    }
    const splitter = this.#splitter;
    const hook = rules.hook();
    const isHeld = this.#passedOfFrame < splitter.pendingBytes;
    this.#frames = [];
    try {
      splitter.push(chunk);
    } catch {
      this.#splitter = undefined;
      if (hook !== undefined || isHeld) this.#connection.cut();
      else this.#pass(chunk);
      return;
    }
    for (let i = 0; i < this.#frames.length; i++) rules.framed(this.#direction);
    if (hook === undefined && !isHeld) {
      this.#frameIndex += this.#frames.length;
      this.#passedOfFrame = splitter.pendingBytes;
      this.#pass(chunk);
      return;
    }
    for (const frame of this.#frames) {
      const begun = this.#passedOfFrame;
      this.#passedOfFrame = 0;
      this.#judge(frame, begun, hook);
    }
  }

  /** A frame of which a part has gone already can only be completed. */
  #judge(frame: Buffer, passed: number, hook: FrameHook | undefined): void {
    const index = this.#frameIndex++;
    if (this.#connection.isCut) return;
    if (hook === undefined || passed > 0) {
      this.#pass(frame.subarray(passed));
      return;
    }
    const verdict = hook({
      direction: this.#direction,
      connection: this.#connection.number,
      index,
      bytes: frame.subarray(4),
    });
    if (verdict === 'drop') return;
    if (verdict === 'cut') this.#connection.cut();
    else if (typeof verdict === 'object') this.#pass(framed(verdict.replace));
    else {
      this.#pass(frame);
      if (verdict === 'passThenCut') this.#connection.cut({ after: this.#direction });
    }
  }

  #pass(bytes: Buffer): void {
    if (this.#to.destroyed || this.#to.writableEnded) return;
    const allowed = this.#connection.rules.allow(this.#direction, bytes.length);
    if (allowed.bytes > 0) this.#to.write(bytes.subarray(0, allowed.bytes));
    if (allowed.cut) this.#connection.cut({ after: this.#direction });
  }
}

function framed(body: Uint8Array): Buffer {
  const frame = Buffer.alloc(4 + body.length);
  frame.writeInt32BE(body.length);
  frame.set(body, 4);
  return frame;
}
