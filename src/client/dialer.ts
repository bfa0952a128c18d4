/**
 * Finds a server that takes a connection.
 *
 * Hosts are tried in a shuffled order. Each name is resolved again on every try, and each of its
 * addresses is tried. After a round in which none answered it waits, longer each time, and starts
 * over with a new order. While a session may still be saved, the waits stay short against what is left
 * of it. What failed, and why, is kept for the error that the caller will see.
 */

import { lookup as dnsLookup } from 'node:dns/promises';
import net from 'node:net';
import { printable } from '../protocol/index.ts';
import { Backoff, type Clock } from '../support/index.ts';
import { type Host, hostText } from './connection-string.ts';
import { type SavingTime, savingWaitMs } from './saving-wait.ts';
import { type Endpoint, type TlsOptions, Transport } from './transport.ts';

export type Lookup = (name: string) => Promise<readonly { address: string }[]>;

export interface DialerOptions {
  readonly hosts: readonly Host[];
  readonly tls?: TlsOptions | undefined;
  readonly frameBytesMax: number;
  /** How long one address may take to answer. A share of the session timeout unless said. */
  readonly attemptTimeoutMs?: number | undefined;
  readonly sessionTimeoutMs: number;
  /** Rounds over all hosts before it gives up; the count starts anew with every server that took us in. */
  readonly roundsMax: number;
  readonly backoffFirstMs: number;
  readonly backoffMaxMs: number;
  readonly clock: Clock;
  readonly random?: () => number;
  readonly lookup?: Lookup | undefined;
  /** What is left of a session without a link. Undefined while there is no session to save. */
  readonly saving?: (() => SavingTime | undefined) | undefined;
  /** An address did not take a connection. */
  readonly onFailed?: (() => void) | undefined;
}

export interface Attempt {
  readonly host: string;
  readonly address: string | undefined;
  readonly error: Error;
}

/** No server took us in: what was tried, and what each said. */
export class ConnectError extends Error {
  override readonly name = 'ConnectError';
  readonly code = 'CONNECT_FAILED';
  readonly attempts: readonly Attempt[];

  constructor(why: string, attempts: readonly Attempt[]) {
    super(`${why}${attempts.length > 0 ? `: ${attempts.map(attemptText).join('; ')}` : ''}`);
    this.attempts = attempts;
  }
}

function attemptText({ host, address, error }: Attempt): string {
  const at = address === undefined || host.includes(address) ? host : `${host} (${address})`;
  const { code } = error as NodeJS.ErrnoException;
  const said = error.message || code || error.name;
  return `${at} ${printable(said)}`;
}

/** No address gets less time than this to answer. */
const attemptMinMs = 100;

export class Dialer {
  readonly #options: DialerOptions;
  readonly #backoff: Backoff;
  readonly #random: () => number;
  #hosts: Host[] = [];
  #addresses: Endpoint[] = [];
  /** How many addresses each host had when it was resolved last. */
  readonly #known = new Map<string, number>();
  #failed: Attempt[] = [];
  /** Who is asked at this moment, and since when. */
  #asked: { readonly host: Host; readonly address?: string; readonly sinceMs: number } | undefined;
  #rounds = 0;
  /** What is left of the wait after a round, where it is cut into pieces to save a session. */
  #waitLeftMs = 0;
  /** The round at hand is one over all hosts: not so before the first, nor after a server had us. */
  #isWhole = false;

  constructor(options: DialerOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#backoff = new Backoff({
      firstMs: options.backoffFirstMs,
      maxMs: options.backoffMaxMs,
      random: this.#random,
    });
  }

  /** What failed since a server last took us in: at most one entry for each host, the newest. */
  get attempts(): readonly Attempt[] {
    return this.#failed;
  }

  /** The same with who was asked and is still silent, for who waits no longer: it may be all there is to say. */
  get soFar(): readonly Attempt[] {
    if (this.#asked === undefined) return this.#failed;
    const { host: asked, address, sinceMs } = this.#asked;
    const host = hostText(asked);
    if (this.#failed.some((attempt) => attempt.host === host)) return this.#failed;
    const silentMs = Math.round(this.#options.clock.nowMs() - sinceMs);
    const error = new Error(`has not answered for ${silentMs} ms`);
    return [...this.#failed, { host, address, error }];
  }

  /**
   * All addresses should have had their turn well before the session is in danger. Once its link is lost,
   * a silent address gets no more than its share of what is left.
   */
  get attemptTimeoutMs(): number {
    const { attemptTimeoutMs, sessionTimeoutMs, hosts, saving } = this.#options;
    const counts = hosts.map((host) => this.#known.get(hostText(host)) ?? 1);
    const addresses = counts.reduce((sum, one) => sum + one, 0);
    const limitMs = attemptTimeoutMs ?? Math.max(attemptMinMs, sessionTimeoutMs / (addresses + 1));
    const leftMs = saving?.()?.leftMs;
    if (leftMs === undefined) return limitMs;
    return Math.min(limitMs, Math.max(attemptMinMs, leftMs / addresses));
  }

  /** The next server that takes a connection. Rejects when the rounds are used up or `signal` aborts. */
  async next(signal: AbortSignal): Promise<Transport> {
    for (;;) {
      const endpoint = await this.#nextEndpoint(signal);
      if (endpoint === undefined) continue;
      this.#ask(endpoint);
      try {
        return await this.#open(endpoint, signal);
      } catch (error) {
        signal.throwIfAborted();
        this.#options.onFailed?.();
        this.failed(endpoint, asError(error));
      }
    }
  }

  /** What came of a connection after all: the handshake failed, so it counts as a failed try. */
  failed({ host, address }: { host: Host; address?: string }, error: Error): void {
    const name = hostText(host);
    this.#asked = undefined;
    this.#failed = this.#failed.filter((attempt) => attempt.host !== name);
    this.#failed.push({ host: name, address, error });
  }

  /**
   * A server took us in: what failed before is history. So are the other addresses of its name: by the
   * time that another server is needed, they may be nobody's.
   */
  succeeded(): void {
    const [next] = this.#addresses.splice(0);
    if (next !== undefined) this.#hosts.unshift(next.host);
    this.#asked = undefined;
    this.#failed = [];
    this.#rounds = 0;
    this.#waitLeftMs = 0;
    this.#isWhole = false;
    this.#backoff.reset();
  }

  /** Tries this host next, before those whose turn it is. */
  prefer(host: Host): void {
    this.#addresses = [];
    this.#hosts = [host, ...this.#hosts.filter((one) => one !== host)];
  }

  #ask(whom: { readonly host: Host; readonly address?: string }): void {
    this.#asked = { ...whom, sinceMs: this.#options.clock.nowMs() };
  }

  async #open(endpoint: Endpoint, signal: AbortSignal): Promise<Transport> {
    const { tls, frameBytesMax } = this.#options;
    return this.#limited('did not answer', signal, (limited) =>
      Transport.open(endpoint, { tls, frameBytesMax, signal: limited }),
    );
  }

  async #limited<T>(
    what: string,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { clock } = this.#options;
    const { attemptTimeoutMs } = this;
    const limit = new AbortController();
    const timer = clock.after(attemptTimeoutMs, () =>
      limit.abort(new Error(`${what} within ${Math.round(attemptTimeoutMs)} ms`)),
    );
    try {
      return await work(AbortSignal.any([signal, limit.signal]));
    } finally {
      timer.cancel();
    }
  }

  async #nextEndpoint(signal: AbortSignal): Promise<Endpoint | undefined> {
    const known = this.#addresses.shift();
    if (known !== undefined) return known;
    const host = this.#hosts.shift();
    if (host === undefined) {
      await this.#newRound(signal);
      return undefined;
    }
    this.#ask({ host });
    try {
      const addresses = await this.#limited('was not resolved', signal, (limited) =>
        this.#resolve(host.name, limited),
      );
      this.#known.set(hostText(host), addresses.length);
      this.#addresses = shuffled(addresses, this.#random).map((address) => ({ host, address }));
    } catch (error) {
      signal.throwIfAborted();
      this.failed({ host }, asError(error));
    }
    return undefined;
  }

  async #newRound(signal: AbortSignal): Promise<void> {
    if (this.#isWhole && this.#failed.length > 0) {
      if (this.#waitLeftMs <= 0) this.#endRound();
      await this.#wait(this.#nextWaitMs(), signal);
    }
    this.#isWhole = true;
    this.#hosts = shuffled(this.#options.hosts, this.#random);
  }

  #endRound(): void {
    this.#rounds += 1;
    if (this.#rounds >= this.#options.roundsMax) {
      throw new ConnectError(`no server took us in, in ${this.#rounds} rounds`, this.#failed);
    }
    this.#waitLeftMs = this.#backoff.next();
  }

  /**
   * All of the wait after a round; or, to save a session, a piece of it, with another try behind it. Such
   * tries do not count as rounds: a client that may make ten does not give up sooner for them.
   */
  #nextWaitMs(): number {
    const saving = this.#options.saving?.();
    const pieceMs = saving ? savingWaitMs(saving) * (0.5 + 0.5 * this.#random()) : Infinity;
    const waitMs = Math.min(this.#waitLeftMs, pieceMs);
    this.#waitLeftMs -= waitMs;
    return waitMs;
  }

  #wait(delayMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const aborted = () => {
        timer.cancel();
        reject(signal.reason);
      };
      const timer = this.#options.clock.after(delayMs, () => {
        signal.removeEventListener('abort', aborted);
        resolve();
      });
      if (signal.aborted) aborted();
      else signal.addEventListener('abort', aborted, { once: true });
    });
  }

  /** Rejects when aborted, as a look-up itself cannot be called off. */
  async #resolve(name: string, signal: AbortSignal): Promise<string[]> {
    if (net.isIP(name)) return [name];
    const lookup: Lookup = this.#options.lookup ?? ((host) => dnsLookup(host, { all: true }));
    signal.throwIfAborted();
    const found = await new Promise<readonly { address: string }[]>((resolve, reject) => {
      const aborted = () => reject(signal.reason);
      signal.addEventListener('abort', aborted, { once: true });
      lookup(name)
        .then(resolve, reject)
        .finally(() => signal.removeEventListener('abort', aborted));
    });
    if (found.length === 0) throw new Error(`${name} resolves to no address`);
    return found.map(({ address }) => address);
  }
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const all = [...items];
  for (let i = all.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [all[i], all[j]] = [all[j]!, all[i]!];
  }
  return all;
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
