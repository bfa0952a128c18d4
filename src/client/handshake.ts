/**
 * The first words on a fresh link: who we are, who the server says we are, and, where asked for, the
 * SASL negotiation. Bounded in time, and over at once when the link or the session is.
 */

import { type Infer, ProtocolError, Reader } from '../jute/index.ts';
import {
  ConnectRequest,
  ConnectResponse,
  errorCodeOf,
  ops,
  ReplyHeader,
  SetSASLResponse,
  ZkError,
} from '../protocol/index.ts';
import { type Clock, deferred } from '../support/index.ts';
import type { SaslExchange, SaslMechanism } from './auth.ts';
import type { Transport } from './transport.ts';

export interface Patience {
  readonly clock: Clock;
  readonly limitMs: number;
  /** Aborts when the session ends meanwhile. */
  readonly signal: AbortSignal;
}

/** More rounds than any mechanism needs: a server that never gets there is not waited for. */
const saslRoundsMax = 10;
/** One SASL request at a time, so that they need no numbers to tell them apart. */
const saslXid = 1;

const silentInSasl =
  'closed the connection during the SASL negotiation: it may refuse the credentials or the mechanism';

/** Says hello. The answer says which session we have, or, by a timeout of 0, that it is over. */
export async function hello(
  transport: Transport,
  request: Infer<typeof ConnectRequest>,
  patience: Patience,
): Promise<Infer<typeof ConnectResponse>> {
  const { writer } = transport;
  const start = writer.beginFrame();
  ConnectRequest.write(writer, request);
  writer.endFrame(start);
  const answer = await answered(transport, patience, silence(request));
  if (answer.remaining === ReplyHeader.width) throw refusalOf(ReplyHeader.read(answer).err);
  const response = ConnectResponse.read(answer);
  answer.finish();
  return response;
}

/** A server that has lost its quorum, and keeps no sessions of its own, answers as if to a request. */
function refusalOf(err: number): ZkError {
  return new ZkError(errorCodeOf(err), { op: 'connect' });
}

/** What a link that is closed instead of an answer most likely means. */
function silence({ lastZxidSeen, sessionId, readOnly }: Infer<typeof ConnectRequest>): string {
  if (sessionId === 0n || lastZxidSeen === 0n) {
    return 'closed the connection without an answer: too many connections, a server that is not ready, or a TLS port';
  }
  const older = `its data is probably older than what this session has seen (zxid 0x${lastZxidSeen.toString(16)}), as after a restore from a backup or with an empty data directory`;
  // Since 3.7 a read-only server takes back no session that others have to know of (ZOOKEEPER-3864).
  return readOnly
    ? `closed the connection without an answer: it has lost its quorum, and takes nobody back who had a session before; or ${older}`
    : `closed the connection without an answer: ${older}`;
}

/** Proves who we are by SASL. Rejects with AUTH_FAILED when the server, or we, are not content. */
export async function negotiate(
  transport: Transport,
  mechanism: SaslMechanism,
  patience: Patience,
): Promise<void> {
  const own = <T>(work: () => T | Promise<T>): Promise<T> =>
    inTime(
      (async () => work())(),
      transport,
      patience,
      'the SASL mechanism was not done',
      silentInSasl,
    );
  const exchange = await own(() => mechanism(transport.endpoint));
  let token: Buffer | null = await own(() => exchange.start());
  for (let round = 0; token !== null; round++) {
    if (round === saslRoundsMax) throw refused(`not done after ${saslRoundsMax} rounds`);
    const answer = await askSasl(transport, token, patience);
    token = await own(() => stepped(exchange, answer));
  }
}

async function stepped(exchange: SaslExchange, answer: Buffer): Promise<Buffer | null> {
  try {
    return await exchange.step(answer);
  } catch (error) {
    const { message } = error as Error;
    // Apache's server and ours answer so where nobody has told them of SASL: it is not the password then.
    const said =
      answer.length === 0 ? `${message}; a server with no SASL set up answers so` : message;
    throw refused(said, error);
  }
}

async function askSasl(transport: Transport, token: Buffer, patience: Patience): Promise<Buffer> {
  const { writer } = transport;
  const start = writer.beginFrame();
  writer.int(saslXid);
  writer.int(ops.sasl.code);
  ops.sasl.request.write(writer, { token });
  writer.endFrame(start);
  const answer = await answered(transport, patience, silentInSasl);
  answer.int(); // the xid
  answer.long(); // the zxid, which SASL replies leave at 0
  const err = answer.int();
  if (err !== 0) throw refused(`the server answered ${errorCodeOf(err)}`);
  const { token: next } = SetSASLResponse.read(answer);
  answer.finish();
  return next ?? Buffer.alloc(0);
}

function refused(detail: string, cause?: unknown): ZkError {
  return new ZkError('AUTH_FAILED', { op: 'sasl', detail, ...(cause ? { cause } : {}) });
}

/** Sends what was written and waits for the next frame. */
async function answered(transport: Transport, patience: Patience, silent: string): Promise<Reader> {
  const answer = deferred<Reader>();
  transport.onFrame = (bytes, start, end) => {
    transport.onFrame = () => {
      throw new ProtocolError('a frame that answers nothing');
    };
    answer.resolve(new Reader(Buffer.from(bytes.subarray(start, end))));
  };
  patience.signal.throwIfAborted();
  transport.flush();
  return inTime(answer.promise, transport, patience, 'did not answer the handshake', silent);
}

/** Waits for it as long as there is time, and as the link and the session last. */
async function inTime<T>(
  awaited: Promise<T>,
  transport: Transport,
  { clock, limitMs, signal }: Patience,
  late: string,
  silent: string,
): Promise<T> {
  const over = deferred<never>();
  over.promise.catch(() => {}); // it may fail while nobody waits any more
  const timer = clock.after(limitMs, () =>
    over.reject(new Error(`${late} within ${Math.round(limitMs)} ms`)),
  );
  const aborted = () => over.reject(signal.reason);
  signal.addEventListener('abort', aborted, { once: true });
  void transport.ended.then((reason) => over.reject(endOf(reason, silent)));
  try {
    const outcome = await Promise.race([awaited, over.promise]);
    signal.throwIfAborted();
    return outcome;
  } finally {
    timer.cancel();
    signal.removeEventListener('abort', aborted);
  }
}

/** What to say of a link that is over. TLS 1.3 refuses a certificate only behind its own handshake. */
function endOf(reason: Error, silent: string): Error {
  if (reason instanceof ProtocolError) return reason;
  const { code, reason: alert } = reason as { code?: string; reason?: string };
  const why = code?.startsWith('ERR_SSL_') ? `broke off TLS: ${alert ?? code}` : silent;
  return new Error(why, { cause: reason });
}
