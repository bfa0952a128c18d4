/** What a client can be told, and what it does when it is not. */

import { frameBytesMax } from '../protocol/index.ts';
import {
  ArgumentError,
  type Clock,
  checkOptions,
  type Logger,
  silentLogger,
  systemClock,
} from '../support/index.ts';
import { checkCount } from './arguments.ts';
import type { SaslMechanism } from './auth.ts';
import { parseServers } from './connection-string.ts';
import type { Lookup } from './dialer.ts';
import { backoffTable } from './option-tables.ts';
import type { SessionOptions } from './session.ts';
import type { Identity } from './session-state.ts';
import type { TlsOptions } from './transport.ts';

export interface ClientOptions {
  /** Asked of the server, which has the last word (2 to 20 ticks, 4 to 40 s, unless configured). 30 s. */
  readonly sessionTimeoutMs?: number;
  /** How long `connect()` waits for a server to take us in. 15 s. */
  readonly connectTimeoutMs?: number;
  /** How long one address may take to accept, and to answer the handshake. The session timeout, by all addresses and one. */
  readonly attemptTimeoutMs?: number;
  /** Rounds over all hosts before a client that finds no server gives up for good. No limit. */
  readonly connectRoundsMax?: number;
  /**
   * The wait after a round in which no server answered: from `firstMs`, doubling, up to `maxMs`. While a session
   * may still be saved the client tries more often: at least every second, and every tenth of the timeout.
   */
  readonly backoff?: { readonly firstMs?: number; readonly maxMs?: number };
  /** Options of `tls.connect`. Given at all, the link is TLS, and certificate and name are verified. */
  readonly tls?: TlsOptions;
  /** Proofs to send on every link, such as `{ scheme: 'digest', auth: 'user:password' }`. */
  readonly auth?: readonly { readonly scheme: string; readonly auth: string | Uint8Array }[];
  /** `digestMd5({ … })` or `kerberos({ … })`. */
  readonly sasl?: SaslMechanism;
  /** Take a server that has lost its quorum too: it answers reads, and the state says `readOnly`. */
  readonly readOnly?: boolean;
  /**
   * After the session expired, begin a new one. The `session` event then tells of it: the place to
   * make ephemeral nodes again. Without it the client stays expired, and every call says so.
   */
  readonly renew?: boolean;
  /**
   * An existing session to take over, as `client.identity` gave it, perhaps in another process. A client that
   * still has the session ends with `SESSION_EXPIRED` within seconds.
   */
  readonly identity?: Identity;
  /** How often a read is sent again, by itself, when its link broke before the reply. 3. */
  readonly readRetries?: number;
  /** A deadline for every call that sets none. None. */
  readonly requestTimeoutMs?: number;
  /** Requests sent and not yet answered; more wait here. 1,000. */
  readonly inFlightMax?: number;
  /** Calls that may wait here, for room or for a link; more are refused. 100,000. */
  readonly waitingMax?: number;
  /** The longest frame: `jute.maxbuffer` of the servers. 1 MiB less a byte; replies, which have a Stat more, 1 KiB more. */
  readonly frameBytesMax?: number;
  /** The longest request, where longer replies are wanted than the servers take requests. As `frameBytesMax`. */
  readonly requestBytesMax?: number;
  /**
   * How long `close()` tries to reach a server and waits for its answer, unless it is called with a time of its own.
   *
   * @default 5_000
   */
  readonly closeTimeoutMs?: number;
  readonly logger?: Logger;
  /** For tests: time, chance, name resolution. */
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly lookup?: Lookup;
  readonly firstXid?: number;
}

export interface Settings {
  readonly chroot: string;
  readonly session: SessionOptions;
  readonly connectTimeoutMs: number;
  readonly requestTimeoutMs: number | undefined;
  readonly readRetries: number;
  readonly renew: boolean;
}

export function settingsOf(servers: string, options: ClientOptions): Settings {
  if (options.backoff !== undefined)
    checkOptions('backoff', options.backoff, backoffTable, 'backoff.');
  const { hosts, chroot } = parseServers(servers);
  const replyBytesMax = options.frameBytesMax ?? frameBytesMax;
  const sessionTimeoutMs = options.sessionTimeoutMs ?? 30_000;
  for (const name of positive) {
    const value = options[name];
    if (value !== undefined) checkCount(name, value);
  }
  if (options.readRetries !== undefined) checkCount('readRetries', options.readRetries, 0);
  for (const name of ['firstMs', 'maxMs'] as const) {
    const value = options.backoff?.[name];
    if (value !== undefined) checkCount(`backoff.${name}`, value, 0);
  }
  if (options.identity !== undefined) checkIdentity(options.identity);
  if (sessionTimeoutMs > 0x7fff_ffff || !Number.isInteger(sessionTimeoutMs)) {
    throw new ArgumentError('sessionTimeoutMs', 'whole milliseconds below 2^31 are wanted');
  }
  return {
    chroot,
    connectTimeoutMs: options.connectTimeoutMs ?? 15_000,
    requestTimeoutMs: options.requestTimeoutMs,
    readRetries: options.readRetries ?? 3,
    renew: options.renew ?? false,
    session: {
      sessionTimeoutMs,
      allowReadOnly: options.readOnly ?? false,
      requestBytesMax: options.requestBytesMax ?? replyBytesMax,
      inFlightMax: options.inFlightMax ?? 1000,
      waitingMax: options.waitingMax ?? 100_000,
      closeTimeoutMs: options.closeTimeoutMs ?? 5_000,
      clock: options.clock ?? systemClock,
      logger: options.logger ?? silentLogger,
      sasl: options.sasl,
      identity: options.identity,
      firstXid: options.firstXid,
      dialer: {
        hosts,
        tls: options.tls,
        frameBytesMax: replyBytesMax,
        attemptTimeoutMs: options.attemptTimeoutMs,
        sessionTimeoutMs,
        roundsMax: options.connectRoundsMax ?? Number.POSITIVE_INFINITY,
        backoffFirstMs: options.backoff?.firstMs ?? 50,
        backoffMaxMs: options.backoff?.maxMs ?? 5_000,
        lookup: options.lookup,
        ...(options.random ? { random: options.random } : {}),
      },
    },
  };
}

function checkIdentity({ sessionId, password, timeoutMs }: Identity): void {
  if (typeof sessionId !== 'bigint') {
    throw new ArgumentError('identity.sessionId', 'a bigint is wanted');
  }
  if (!(password instanceof Uint8Array)) {
    throw new ArgumentError('identity.password', 'bytes are wanted');
  }
  checkCount('identity.timeoutMs', timeoutMs);
}

const positive = [
  'sessionTimeoutMs',
  'connectTimeoutMs',
  'attemptTimeoutMs',
  'connectRoundsMax',
  'requestTimeoutMs',
  'inFlightMax',
  'waitingMax',
  'frameBytesMax',
  'requestBytesMax',
  'closeTimeoutMs',
] as const;
