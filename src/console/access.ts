/**
 * Who may do what: pure decisions over what a request carries. Nothing is allowed unless said here.
 *
 *   any request     its Host is one that the console was started for (a name that an attacker points at
 *                   this machine is not), and it does not come from another site
 *   to look         on loopback without a token nobody has to prove anything; else a token, once, which
 *                   is exchanged for a cookie, or `Authorization: Bearer`
 *   to change       POST and JSON, an Origin that is our own, and the header with the token of this run,
 *                   which other sites can neither read nor send; and a console started with --write
 *
 * The address of a client is the one of its socket: headers that claim another are not read.
 */

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { addressKey } from '../support/index.ts';
import { ConsoleError } from './console-error.ts';
import type { Role } from './views.ts';

export interface AccessOptions {
  /** Editors come in by this one; viewers too if the console is read-only. */
  readonly token?: string | undefined;
  /** Looks only, whatever the console may do. */
  readonly viewToken?: string | undefined;
  /** Changes are possible at all. */
  readonly write: boolean;
}

/** What of a request counts. */
export interface Asking {
  /** The address of the socket. */
  readonly address: string;
  readonly method: string;
  readonly host: string | undefined;
  readonly origin: string | undefined;
  readonly fetchSite: string | undefined;
  readonly contentType: string | undefined;
  readonly cookie: string | undefined;
  readonly authorization: string | undefined;
  readonly changeToken: string | undefined;
}

export interface Caller {
  readonly role: Role;
  /** What the change token is bound to. */
  readonly id: string;
}

export type Need = 'nothing' | 'view' | 'write';

/** Cookies that are remembered; the oldest goes first. */
const loginsMax = 1_000;
/** A login ends by then, however much it is used. */
const loginMs = 12 * 60 * 60_000;
/** Wrong tokens of one address, before none of its tokens is looked at for a minute. */
const guessesPerMinuteMax = 20;
const minuteMs = 60_000;
/** Addresses whose wrong tokens are counted; the one that was wrong longest ago is forgotten first. */
const guessersMax = 10_000;

export class Access {
  readonly #options: AccessOptions;
  readonly #nowMs: () => number;
  readonly #secret = randomBytes(32);
  readonly #logins = new Map<string, { readonly role: Role; readonly endsMs: number }>();
  /** Wrong tokens of the last minute, by address and digest, and when each was shown last. */
  readonly #guesses = new Map<string, Map<string, number>>();
  #hosts: ReadonlySet<string> = new Set();
  #cookieName = 'drover-console';

  constructor(options: AccessOptions, nowMs: () => number = Date.now) {
    this.#options = options;
    this.#nowMs = nowMs;
  }

  /**
   * Known once the port is. Cookies know no ports, so that two consoles need two names.
   *
   * @param allowed names that others forward to us: a proxy listens on a port of its own, and of the usual
   * ones (80, 443) no browser speaks.
   */
  listensOn(hosts: readonly string[], port: number, allowed: readonly string[] = []): void {
    const own = hosts.flatMap((host) => [`${host}:${port}`, ...(port === 80 ? [host] : [])]);
    const others = allowed.flatMap((host) => {
      const [, name, at] = /^(.*[^:]):(\d+)$/.exec(host) ?? [];
      if (name === undefined) return [host, `${host}:${port}`];
      return at === '80' || at === '443' ? [host, name] : [host];
    });
    this.#hosts = new Set([...own, ...others].map((host) => host.toLowerCase()));
    this.#cookieName = `drover-console-${port}`;
  }

  get needsToken(): boolean {
    return this.#options.token !== undefined || this.#options.viewToken !== undefined;
  }

  checkHost({ host }: Asking): void {
    if (host !== undefined && this.#hosts.has(host.toLowerCase())) return;
    throw new ConsoleError(
      'UNKNOWN_HOST',
      'this console does not answer to that name; start it with --allow-host NAME',
    );
  }

  /** No other site gets anything out of us, not even an error that tells something. */
  checkSite({ fetchSite }: Asking): void {
    // `none` is a person who typed the address or followed a bookmark.
    if (fetchSite === undefined || fetchSite === 'same-origin' || fetchSite === 'none') return;
    throw new ConsoleError('CROSS_SITE', 'another site asked for this; open the console itself');
  }

  caller(asking: Asking): Caller {
    if (!this.needsToken) return { role: this.#most(), id: 'loopback' };
    const bearer = /^Bearer (.+)$/.exec(asking.authorization ?? '')?.[1];
    if (bearer !== undefined) {
      const role = this.#proved(bearer, asking.address);
      return { role, id: role === 'nobody' ? 'nobody' : `bearer ${digest(bearer)}` };
    }
    const cookie = cookieIn(asking.cookie, this.#cookieName);
    const login = cookie === undefined ? undefined : this.#logins.get(cookie);
    if (login === undefined || this.#nowMs() >= login.endsMs) {
      if (cookie !== undefined) this.#logins.delete(cookie);
      return { role: 'nobody', id: 'nobody' };
    }
    return { role: login.role, id: `cookie ${cookie}` };
  }

  check(need: Need, asking: Asking, caller: Caller): void {
    if (asking.method !== 'GET' && asking.method !== 'HEAD') this.#checkChange(asking, caller);
    if (need === 'nothing') return;
    if (caller.role === 'nobody') {
      throw new ConsoleError('NEEDS_TOKEN', 'this console wants its token first');
    }
    if (need === 'view' || caller.role === 'editor') return;
    throw new ConsoleError('FORBIDDEN', this.readOnlyReason(caller) ?? 'editors alone may do this');
  }

  readOnlyReason({ role }: Caller): string | null {
    if (role === 'editor') return null;
    if (!this.#options.write) return 'read-only: the console was started without --write';
    return role === 'viewer' ? 'read-only: this token only looks' : 'read-only until you log in';
  }

  /** What a page sends back with every change. Nobody who can't read our answers knows it. */
  changeToken({ id }: Caller): string {
    return createHmac('sha256', this.#secret).update(id).digest('base64url');
  }

  /** The cookie of a login. After too many wrong tokens of an address all others of that address are refused. */
  login(
    token: string,
    { address, origin }: Asking,
  ): { readonly caller: Caller; readonly cookie: string } {
    const role = this.#proved(token, address);
    if (role === 'nobody') {
      throw new ConsoleError('NEEDS_TOKEN', 'that is not the token of this console');
    }
    const id = randomBytes(24).toString('base64url');
    this.#logins.set(id, { role, endsMs: this.#nowMs() + loginMs });
    const [oldest] = this.#logins.keys();
    if (this.#logins.size > loginsMax && oldest !== undefined) this.#logins.delete(oldest);
    return {
      caller: { role, id: `cookie ${id}` },
      cookie: this.#cookie(id, origin, loginMs / 1_000),
    };
  }

  /** Forgets the login, and has the browser forget it. */
  logout(asking: Asking): string {
    const id = cookieIn(asking.cookie, this.#cookieName);
    if (id !== undefined) this.#logins.delete(id);
    return this.#cookie('', asking.origin, 0);
  }

  /**
   * The console speaks no TLS, a proxy before it may: the origin of the page says so. Headers by which
   * a proxy would say it can come from anybody.
   */
  #cookie(value: string, origin: string | undefined, maxAgeS: number): string {
    const secure = origin?.toLowerCase().startsWith('https://') ? '; Secure' : '';
    return `${this.#cookieName}=${value}; Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=Strict${secure}`;
  }

  #most(): Role {
    return this.#options.write ? 'editor' : 'viewer';
  }

  /** The role that a token gives. After too many wrong ones from its address no token is looked at. */
  #proved(token: string, address: string): Role {
    const nowMs = this.#nowMs();
    const key = addressKey(address);
    const guesses = this.#guesses.get(key) ?? new Map<string, number>();
    for (const [guess, atMs] of guesses) {
      if (nowMs - atMs >= minuteMs) guesses.delete(guess);
    }
    const guess = digest(token);
    // A token that comes again, as of a script with the previous token, guesses nothing.
    if (guesses.size >= guessesPerMinuteMax && !guesses.has(guess)) {
      throw new ConsoleError('TOO_MANY', 'too many wrong tokens from this address; wait a minute');
    }
    const role = this.#roleBy(token);
    if (role !== 'nobody') return role;
    guesses.set(guess, nowMs);
    this.#guesses.delete(key); // so that it is the youngest
    this.#guesses.set(key, guesses);
    const [oldest] = this.#guesses.keys();
    if (this.#guesses.size > guessersMax && oldest !== undefined) this.#guesses.delete(oldest);
    return role;
  }

  #roleBy(given: string): Role {
    const { token, viewToken } = this.#options;
    // Both are looked at, so that the time tells nothing.
    const isToken = token !== undefined && isSame(given, token);
    const isViewToken = viewToken !== undefined && isSame(given, viewToken);
    if (isToken) return this.#most();
    return isViewToken ? 'viewer' : 'nobody';
  }

  #checkChange(asking: Asking, caller: Caller): void {
    const { method, contentType, origin, host, fetchSite } = asking;
    if (method !== 'POST') throw new ConsoleError('WRONG_METHOD', 'GET or POST is wanted');
    if (!/^application\/json(;\s*charset=utf-8)?$/i.test(contentType ?? '')) {
      throw new ConsoleError('NOT_JSON', 'content-type: application/json is wanted');
    }
    if (fetchSite !== undefined && fetchSite !== 'same-origin') {
      throw new ConsoleError('CROSS_SITE', 'another site asked for this; open the console itself');
    }
    if (origin === undefined || !isOwnOrigin(origin, host)) {
      throw new ConsoleError('CROSS_SITE', 'a change has to come from the console itself (Origin)');
    }
    // Who has no role yet has no token either: the login itself proves it.
    if (caller.role === 'nobody') return;
    if (!isSame(asking.changeToken ?? '', this.changeToken(caller))) {
      throw new ConsoleError(
        'BAD_TOKEN',
        'x-drover-token is missing or of another run; load again',
      );
    }
  }
}

function isOwnOrigin(origin: string, host: string | undefined): boolean {
  if (host === undefined) return false;
  const own = host.toLowerCase();
  return [`http://${own}`, `https://${own}`].includes(origin.toLowerCase());
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

/** In a time that does not depend on where they differ. */
function isSame(a: string, b: string): boolean {
  const [left, right] = [a, b].map((text) => createHash('sha256').update(text).digest());
  return timingSafeEqual(left!, right!);
}

function cookieIn(header: string | undefined, name: string): string | undefined {
  for (const part of (header ?? '').split(';')) {
    const at = part.indexOf('=');
    if (at > 0 && part.slice(0, at).trim() === name) return part.slice(at + 1).trim();
  }
  return undefined;
}
