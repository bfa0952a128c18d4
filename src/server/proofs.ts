/**
 * Requests about the link itself, in which its peer proves who it is: `auth` and SASL. They are answered
 * at once, ahead of what waits on the link.
 *
 * In: such a request. Out: ids for the link, or a refusal, after which it closes. A user for whom an address
 * has failed too often is refused from there. What was shown as a proof is never told: it may be a password for
 * somewhere else.
 */

import { ProtocolError, type Reader } from '../jute/index.ts';
import {
  AuthPacket,
  GetSASLRequest,
  type Id,
  ops,
  printable,
  SetSASLResponse,
  wireOf,
} from '../protocol/index.ts';
import type { Logger } from '../support/index.ts';
import { type Auth, withId } from './auth.ts';
import { type AuthAttempts, nobody } from './auth-attempts.ts';
import type { Connection } from './connection.ts';
import { hexId } from './log-lines.ts';
import type { EngineOptions } from './options.ts';
import { beginReply, headerReply, headerReplyBytes, lengthBytes } from './replies.ts';
import type { ServerStats } from './stats.ts';

const unimplementedErr = wireOf('UNIMPLEMENTED');
const authFailedErr = wireOf('AUTH_FAILED');
const saslRequiredErr = wireOf('SESSION_CLOSED_REQUIRE_SASL');

export interface ProofOptions {
  readonly sasl: EngineOptions['sasl'];
  /** Who has none of these proves nothing else, and may do nothing else. */
  readonly requiredSchemes: EngineOptions['requiredSchemes'];
  readonly authIdsMax: number;
  /** Of all ids of a link together: each may be as long as a frame, and is kept as long as the link. */
  readonly idCharsMax: number;
}

export class Proofs {
  readonly #auth: Auth;
  readonly #attempts: AuthAttempts;
  readonly #stats: ServerStats;
  readonly #logger: Logger;
  readonly #options: ProofOptions;

  constructor(
    auth: Auth,
    attempts: AuthAttempts,
    stats: ServerStats,
    logger: Logger,
    options: ProofOptions,
  ) {
    this.#auth = auth;
    this.#attempts = attempts;
    this.#stats = stats;
    this.#logger = logger;
    this.#options = options;
  }

  /** Whether to refuse: who asks has to prove who they are first, and proving is all they may do. */
  isUnproven(code: number, ids: readonly Id[]): boolean {
    const required = this.#options.requiredSchemes;
    if (required === undefined || code === ops.auth.code || code === ops.sasl.code) return false;
    return !ids.some(({ scheme }) => required.includes(scheme));
  }

  /** To who asked without a proof. */
  refuse(connection: Connection, xid: number): void {
    this.#end(connection, xid, 0, saslRequiredErr);
  }

  /** Whatever is no op that a session may ask for. The reader stands behind the header. */
  take(connection: Connection, code: number, xid: number, reader: Reader, nowMs: number): void {
    try {
      if (code === ops.auth.code) this.#authenticate(connection, xid, reader, nowMs);
      else if (code === ops.sasl.code) this.#negotiate(connection, xid, reader, nowMs);
      else this.#end(connection, xid, -1, unimplementedErr);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      connection.close();
    }
  }

  #negotiate(connection: Connection, xid: number, reader: Reader, nowMs: number): void {
    const { token } = GetSASLRequest.read(reader);
    const { sasl, requiredSchemes } = this.#options;
    // Without SASL configured, Apache answers every token with none.
    if (sasl === undefined) {
      this.#answerSasl(connection, xid, 0, null);
      return;
    }
    const step = sasl.step(connection, token);
    const user = sasl.claimedBy(connection);
    const isOver = step === null || user !== undefined;
    const isRefused = isOver && this.#mayNotTry(connection, nowMs, user);
    if (step !== null && !isRefused) {
      for (const id of step.ids) connection.ids = withId(connection.ids, id);
      this.#answerSasl(connection, xid, 0, step.token);
      return;
    }
    if (!isRefused) this.#failed(connection, 'sasl', nowMs, user);
    const err = requiredSchemes?.includes('sasl') ? saslRequiredErr : authFailedErr;
    this.#answerSasl(connection, xid, err, null);
    connection.finish();
  }

  #answerSasl(connection: Connection, xid: number, err: number, token: Buffer | null): void {
    const { out } = connection;
    const start = beginReply(out, xid, 0, err);
    SetSASLResponse.write(out, { token });
    this.#said(connection, out.endFrame(start));
  }

  #authenticate(connection: Connection, xid: number, reader: Reader, nowMs: number): void {
    const { scheme, auth } = AuthPacket.read(reader);
    if (this.#auth.meansAnother(scheme, auth)) {
      // An error would end the client; it is to go on to the server that it means.
      const { address } = connection.wire;
      this.#logger.warn({ address }, 'a client meant another ensemble than ensembleAuthName names');
      connection.close();
      return;
    }
    const user = scheme === 'digest' ? this.#auth.guessedAt(auth) : nobody;
    // What proves another id than the super user's can't fail, so nothing can be guessed by it.
    if (user !== undefined && this.#mayNotTry(connection, nowMs, user)) {
      this.#end(connection, xid, 0, authFailedErr);
      return;
    }
    const { ids, wire } = connection;
    const proved = this.#auth.prove(scheme, auth, wire.address, ids);
    if (proved === null || this.#isTooMany(ids, proved)) {
      this.#failed(connection, scheme, nowMs);
      this.#end(connection, xid, 0, authFailedErr);
      return;
    }
    if (this.#auth.isFalseSuper(proved)) this.#failed(connection, scheme, nowMs, user);
    for (const id of proved) connection.ids = withId(connection.ids, id);
    headerReply(connection.out, xid, 0, 0);
    this.#said(connection, headerReplyBytes - lengthBytes);
  }

  #end(connection: Connection, xid: number, zxid: number, err: number): void {
    headerReply(connection.out, xid, zxid, err);
    this.#said(connection, headerReplyBytes - lengthBytes);
    connection.finish();
  }

  #said(connection: Connection, bytes: number): void {
    connection.packetsSent += 1;
    this.#stats.said(bytes);
  }

  #isTooMany(known: readonly Id[], proved: readonly Id[]): boolean {
    const { authIdsMax, idCharsMax } = this.#options;
    const all = proved.reduce(withId, known); // who shows an id again has no more of them
    if (all.length > authIdsMax) return true;
    return all.reduce((sum, { id }) => sum + id.length, 0) > idCharsMax;
  }

  #failed({ wire, session }: Connection, scheme: string, nowMs: number, user = nobody): void {
    this.#stats.authFailures += 1;
    this.#attempts.failed(wire.address, nowMs, user);
    const who = {
      address: wire.address,
      session: session && hexId(session.id),
      scheme: printable(scheme),
    };
    this.#logger.warn(who, 'authentication failed');
  }

  /** Whether its address has failed so often for this user that no proof of it is accepted. */
  #mayNotTry({ wire }: Connection, nowMs: number, user = nobody): boolean {
    if (!this.#attempts.isRefused(wire.address, nowMs, user)) return false;
    this.#stats.authRefusals += 1;
    this.#logger.warn({ address: wire.address }, 'authentication refused after too many failures');
    return true;
  }
}
