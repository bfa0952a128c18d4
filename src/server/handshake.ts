/**
 * How a link comes by a session: a new one, which is a txn like any other, or its own again, by id
 * and password.
 *
 * In: the first frame of a link. Out: a welcome, with or without a session; or no answer at all, just
 * the end of the link, to who has seen more than we have.
 */

import { Reader } from '../jute/index.ts';
import { ConnectRequest, ConnectResponse, passwordBytes } from '../protocol/index.ts';
import type { Tree } from '../tree/index.ts';
import type { Connection } from './connection.ts';
import type { Limits } from './limits.ts';
import type { ServerSession, Sessions } from './sessions.ts';
import type { ServerStats } from './stats.ts';

type Session = ServerSession<Connection>;

export interface HandshakeOptions {
  readonly minSessionTimeoutMs: number;
  readonly maxSessionTimeoutMs: number;
  readonly limits: Limits;
}

export interface HandshakeEnds {
  /** Logs the session; `welcome` is called once it is there. */
  create(connection: Connection, session: Session): void;
  /**
   * Opens the new link of a session once its writes on the old one landed: nothing is answered before, and
   * nothing taken, or who moves often would have more under way than one link may.
   */
  openAfter(connection: Connection, zxid: number): void;
}

export class Handshake {
  readonly #tree: Tree;
  readonly #sessions: Sessions<Connection>;
  readonly #stats: ServerStats;
  readonly #options: HandshakeOptions;
  readonly #ends: HandshakeEnds;

  constructor(
    tree: Tree,
    sessions: Sessions<Connection>,
    stats: ServerStats,
    options: HandshakeOptions,
    ends: HandshakeEnds,
  ) {
    this.#tree = tree;
    this.#sessions = sessions;
    this.#stats = stats;
    this.#options = options;
    this.#ends = ends;
  }

  connect(connection: Connection, frame: Buffer, nowMs: number): void {
    this.#stats.connectRequests += 1;
    const request = ConnectRequest.read(new Reader(frame));
    connection.speaksReadOnly = request.readOnly !== undefined;
    const { minSessionTimeoutMs, maxSessionTimeoutMs, limits } = this.#options;
    const timeoutMs = Math.min(Math.max(request.timeOut, minSessionTimeoutMs), maxSessionTimeoutMs);
    if (request.lastZxidSeen > BigInt(this.#tree.lastZxid)) {
      connection.close();
    } else if (request.sessionId !== 0n) {
      this.#reopen(connection, request, timeoutMs, nowMs);
    } else if (this.#sessions.size >= limits.sessionsMax) {
      connection.close();
    } else {
      const session = this.#sessions.create(timeoutMs, nowMs);
      session.connection = connection;
      connection.session = session;
      connection.hold();
      this.#stats.sessionsCreated += 1;
      this.#ends.create(connection, session);
    }
  }

  #reopen(connection: Connection, request: ConnectRequest, timeoutMs: number, nowMs: number): void {
    this.#stats.revalidations += 1;
    const session = this.#sessions.get(request.sessionId);
    // Before the password is looked at, as in Apache: a wrong one still costs the owner its link.
    session?.connection?.close();
    const isOwner = this.#sessions.passwords.isOf(request.sessionId, request.passwd);
    if (session === undefined || session.closing || !isOwner) {
      this.#answer(connection, undefined);
      connection.finish();
      return;
    }
    session.timeoutMs = timeoutMs;
    session.connection = connection;
    connection.session = session;
    this.#sessions.touch(session, nowMs);
    this.#answer(connection, session);
    if (session.lastZxid > this.#tree.lastZxid) this.#ends.openAfter(connection, session.lastZxid);
    else connection.open();
  }

  /** The new session is logged. */
  welcome(connection: Connection): void {
    this.#answer(connection, connection.session);
    connection.open();
  }

  #answer(connection: Connection, session: Session | undefined): void {
    const writer = connection.out;
    const start = writer.beginFrame();
    ConnectResponse.write(writer, {
      protocolVersion: 0,
      timeOut: session?.timeoutMs ?? 0,
      sessionId: session?.id ?? 0n,
      passwd: session ? this.#sessions.passwords.of(session.id) : Buffer.alloc(passwordBytes),
      // Old clients read the frame to its end, and must not find a byte that they don't know.
      readOnly: connection.speaksReadOnly ? false : undefined,
    });
    writer.endFrame(start);
    connection.packetsSent += 1;
    this.#stats.packetsSent += 1;
  }
}
