/**
 * One script on one server: its slots, the links they had and the sessions that were made.
 *
 * Who waits for whom is decided here alone, from what has come back, and so is the same on every
 * server. `end` hears out every link and ends every session; `leave` closes what is left, in any case.
 */

import { fourLetterWord } from '../peers/four-letter-word.ts';
import { decodeWelcome, greet, Line, type Session, send, silenceMs } from './play-line.ts';
import { RawLink } from './raw-link.ts';
import { type Call, type Command, goesWith, type Script, standsAlone } from './script.ts';

/** How long a link may stay that should be closed, unless a player has more patience. */
export const closesMs = 500;

interface Slot {
  line: Line | undefined;
  session: Session | undefined;
}

/** The slots and sessions of one script. */
export class Scene {
  readonly lines: Line[] = [];
  readonly sessions: Session[] = [];
  readonly #port: number;
  readonly #slots: Slot[] = [];
  /** What a zxid that a script names is counted from. */
  readonly #base: bigint;
  readonly #closesMs: number;

  constructor(port: number, base: bigint, patienceMs: number) {
    this.#port = port;
    this.#base = base;
    this.#closesMs = patienceMs;
  }

  async run(script: Script): Promise<void> {
    const { commands, pipelined } = script;
    for (let at = 0; at < commands.length; ) {
      const command = commands[at]!;
      let end = at + 1;
      if (pipelined && !standsAlone(command)) {
        while (end < commands.length && goesWith(commands[end - 1]!, commands[end]!)) end += 1;
      }
      if (command.kind === 'call') await this.#calls(commands.slice(at, end) as Call[], at);
      else await this.#other(command, at);
      at = end;
    }
  }

  async #calls(calls: readonly Call[], at: number): Promise<void> {
    const { line } = this.#slot(calls[0]!.slot);
    if (line === undefined || !line.isUsable) return;
    send(
      line,
      calls.map((call, i) => [this.#placed(call), at + i]),
    );
    await line.settled();
    if (!line.isUsable) return;
    const { op } = calls.at(-1)!;
    const lastErr = lastReplyErr(line);
    if (op === 'closeSession' && lastErr === 0 && line.session !== undefined) {
      line.session.isOver = true;
    }
    const endsLink = op === 'closeSession' || (lastErr !== 0 && mayEndLink(op));
    if (endsLink) await this.#closes(line, at);
  }

  #placed(call: Call): Call {
    const { op, request } = call;
    if ((op !== 'setWatches' && op !== 'setWatches2') || request === null) return call;
    const { relativeZxid } = request as { relativeZxid: bigint };
    if (relativeZxid <= 0n || relativeZxid > 1_000_000n) return call;
    return { ...call, request: { ...request, relativeZxid: this.#base + relativeZxid } };
  }

  /** What ends a link does so after its answer. */
  async #closes(line: Line, at: number): Promise<void> {
    await line.raw.until(() => false, this.#closesMs);
    line.take();
    if (line.isUsable) line.said.push({ kind: 'open', command: at });
  }

  async #other(command: Exclude<Command, Call>, at: number): Promise<void> {
    const slot = this.#slot(command.slot);
    switch (command.kind) {
      case 'connect': {
        await heardOut(slot.line, at);
        slot.line?.drop();
        const ahead = command.ahead ? 1n << 40n : 0n;
        await this.#open(slot, command, { id: 0n, passwd: Buffer.alloc(16) }, ahead, at);
        return;
      }
      case 'reconnect': {
        const { session, line } = this.#slot(command.of);
        if (session === undefined) return;
        const passwd = passwordFor(command.password, session.passwd);
        const seen = command.ahead ? 1n << 40n : (line?.lastZxid ?? 0n);
        const old = this.lines.filter((other) => other.session === session && other.isUsable);
        for (const other of old) await heardOut(other, at);
        slot.line = undefined;
        await this.#noticed(session);
        await this.#open(slot, command, { id: session.id, passwd }, seen, at);
        for (const other of old) if (other.isUsable) await other.probe(at);
        return;
      }
      case 'greet': {
        await heardOut(slot.line, at);
        slot.line?.drop();
        const line = new Line(await RawLink.open(this.#port));
        this.lines.push(line);
        slot.line = line;
        line.expectWelcome(at);
        line.raw.write(Buffer.from(command.hex, 'hex'));
        await line.settled(this.#closesMs);
        await this.#settle(slot, line, at);
        return;
      }
      case 'drop':
        await heardOut(slot.line, at);
        slot.line?.drop();
        return;
      case 'bytes': {
        const { line } = slot;
        await heardOut(line, at);
        if (line === undefined || !line.isUsable) return;
        line.lastCommand = at;
        line.raw.write(Buffer.from(command.hex, 'hex'));
        await this.#closes(line, at);
        line.drop();
      }
    }
  }

  /**
   * Waits until the server knows that links of the session are gone which we have dropped. Apache, when it
   * closes one of them after the session's next link has come, forgets that one too: it stays open when a
   * third takes the session from it.
   */
  async #noticed(session: Session): Promise<void> {
    const dropped = this.lines.filter((line) => line.session === session && !line.isUsable);
    if (dropped.length === 0) return;
    const deadlineMs = performance.now() + silenceMs;
    let listed: string;
    do {
      listed = await fourLetterWord(this.#port, 'cons');
    } while (
      dropped.some(({ raw }) => listed.includes(`:${raw.port}[`)) &&
      performance.now() < deadlineMs
    );
  }

  async #open(
    slot: Slot,
    { timeOut, old, eager }: { timeOut: number; old: boolean; eager?: readonly Call[] },
    { id, passwd }: { id: bigint; passwd: Buffer | null },
    lastZxidSeen: bigint,
    at: number,
  ): Promise<void> {
    const line = new Line(await RawLink.open(this.#port));
    this.lines.push(line);
    slot.line = line;
    greet(line, { lastZxidSeen, timeOut, sessionId: id, passwd, old }, at);
    if (eager !== undefined) {
      send(
        line,
        eager.map((call) => [this.#placed(call), at]),
      );
    }
    await line.settled();
    await this.#settle(slot, line, at);
  }

  /** A refusal is followed by the end of the link. */
  async #settle(slot: Slot, line: Line, at: number): Promise<void> {
    if (!this.#welcomed(slot, line) && line.isUsable) await this.#closes(line, at);
  }

  /** Whether the link has a session now. */
  #welcomed(slot: Slot, line: Line): boolean {
    const welcome = line.said.find(({ kind }) => kind === 'welcome');
    if (welcome?.kind !== 'welcome') return false;
    const { sessionId, passwd } = decodeWelcome(welcome.frame);
    if (sessionId === 0n) return false;
    let session = this.sessions.find((known) => known.id === sessionId);
    if (session === undefined) {
      session = { id: sessionId, passwd: passwd!, isOver: false };
      this.sessions.push(session);
    }
    line.session = session;
    slot.session = session;
    return true;
  }

  /** Hears out every link, then ends every session. */
  async end(): Promise<void> {
    for (const line of this.lines) if (line.isUsable && line.session) await line.probe(-1);
    for (const session of this.sessions) {
      if (session.isOver) continue;
      const line = this.lines.find((other) => other.session === session && other.isUsable);
      if (line !== undefined) await this.#end(line);
      else await this.#endOver(session);
    }
    for (const line of this.lines) line.take();
  }

  async #endOver({ id, passwd }: Session): Promise<void> {
    const line = new Line(await RawLink.open(this.#port));
    this.lines.push(line);
    greet(line, { lastZxidSeen: 0n, timeOut: 30_000, sessionId: id, passwd }, -1);
    await line.settled();
    await this.#end(line);
  }

  async #end(line: Line): Promise<void> {
    send(line, [[{ kind: 'call', slot: -1, op: 'closeSession', request: {} }, -1]]);
    await line.settled();
    await line.raw.until(() => false, silenceMs);
    line.take();
  }

  leave(): void {
    for (const line of this.lines) line.raw.destroy();
  }

  #slot(index: number): Slot {
    this.#slots[index] ??= { line: undefined, session: undefined };
    return this.#slots[index];
  }
}

/** When it fails: who can't prove who they are, or asks for what nobody knows, is sent away. */
function mayEndLink(op: Call['op']): boolean {
  return typeof op === 'number' || ['auth', 'sasl', 'check'].includes(op);
}

/** Events that others caused are still on their way, and would be lost with the link. */
async function heardOut(line: Line | undefined, command: number): Promise<void> {
  if (line?.isUsable && line.session !== undefined) await line.probe(command);
}

function passwordFor(kind: string, right: Buffer): Buffer | null {
  switch (kind) {
    case 'right':
      return right;
    case 'wrong':
      return Buffer.from(right.map((byte) => byte ^ 1));
    case 'short':
      return right.subarray(0, 8);
    default:
      return null;
  }
}

function lastReplyErr(line: Line): number | undefined {
  const last = line.said.findLast(({ kind }) => kind === 'reply');
  return last?.kind === 'reply' ? last.frame.readInt32BE(12) : undefined;
}
