/**
 * Who somebody is and what they may do: the schemes of ids, ACLs as they are given and as they are
 * kept, and the check of one against the other.
 *
 * A link starts with the id of its address and adds what it proves. `super` passes every check.
 */

import { timingSafeEqual } from 'node:crypto';
import { type Acl, digestId, type Id, openAcl } from '../protocol/index.ts';
import { addressMatches, isAddressRange } from './addresses.ts';
import { isDistinguishedName } from './distinguished-name.ts';

interface Scheme {
  /** Whether `id` may stand in an ACL. */
  valid(id: string): boolean;
  /** Whether who has `id` is meant by `expression`, which stands in an ACL. */
  matches(id: string, expression: string): boolean;
  /** The same for any of several ids: each of a hundred against each of a thousand takes too long. */
  among(ids: ReadonlySet<string>, expression: string): boolean;
  /** Whether `auth` in an ACL expands to such ids: an address proves nobody. */
  readonly proves: boolean;
  /** What whoAmI shows. */
  user(id: string): string;
}

const literally = (id: string, expression: string): boolean => id === expression;
/** By a hash that nobody outside can foretell: as with `sameDigest`, the time it takes tells nothing of an id. */
const has = (ids: ReadonlySet<string>, expression: string): boolean => ids.has(expression);
const asItIs = (id: string): string => id;
const userOf = (id: string): string => id.split(':', 1)[0]!;

/** Names are no secret. How much of the hash behind them is right must not show in the time it takes. */
function sameDigest(a: string, b: string): boolean {
  if (a.length !== b.length || userOf(a) !== userOf(b)) return false;
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

const ip: Scheme = {
  valid: isAddressRange,
  matches: addressMatches,
  among: (ids, expression) => [...ids].some((id) => addressMatches(id, expression)),
  proves: false,
  user: asItIs,
};

const digest: Scheme = {
  // Java's split drops empty strings at the end, so `a:b:` has two parts and `a:` has one.
  valid: (id) => /^[^:]*:[^:]+:*$/.test(id),
  matches: sameDigest,
  among: has,
  proves: true,
  user: userOf,
};

/** Ids that something outside has proved (a certificate, a SASL exchange): compared as they are. */
const literal = { matches: literally, among: has, proves: true, user: asItIs };

const x509: Scheme = { ...literal, valid: isDistinguishedName };

/** As Apache has it: a user of this name is meant by every entry for a SASL user. */
const saslSuper = 'super';

const sasl: Scheme = {
  ...literal,
  // A user of DIGEST-MD5, or a principal of Kerberos: service/host@realm.
  valid: (id) => !id.includes('@') || /^[^/@]*(\/[^/@]*)?@[^/@]*$/.test(id),
  matches: (id, expression) => id === saslSuper || id === expression,
  among: (ids, expression) => ids.has(saslSuper) || ids.has(expression),
};

const extraSchemes = { sasl, x509 } as const satisfies Record<string, Scheme>;

export type ExtraScheme = keyof typeof extraSchemes;

export interface AuthOptions {
  /** `user:base64(sha1(user:password))` of who may do everything. */
  readonly superDigest?: string | undefined;
  readonly digestAlgorithm?: string | undefined;
  /** False: `digest` is no scheme, `DigestAuthenticationProvider.enabled`. */
  readonly digestSchemeEnabled?: boolean | undefined;
  /** The subject of the certificate whose owner may do everything likewise. */
  readonly x509SuperUser?: string | undefined;
  /** Nothing is checked: `skipACL`. */
  readonly skipAcl?: boolean | undefined;
  /**
   * The scheme `ensemble`, by which a client says which server it means: the names of this one. Empty: any
   * name is right. Undefined: there is no such scheme. It proves no id.
   */
  readonly ensembleNames?: readonly string[] | undefined;
  /** Schemes beyond `ip` and `digest`, which only who has a provider for them may use. */
  readonly extraSchemes?: readonly ExtraScheme[] | undefined;
}

export const superId: Id = { scheme: 'super', id: '' };

const sameId = (a: Id, b: Id): boolean => a.scheme === b.scheme && a.id === b.id;

/** The ids of a link with one more. A new list: calls in flight keep the ids they came with. */
export function withId(ids: readonly Id[], id: Id): readonly Id[] {
  return ids.some((known) => sameId(known, id)) ? ids : [...ids, id];
}

/** More comparisons than this are made once for each link and ACL: a small request may ask for a hundred thousand. */
const comparedMax = 64;

export class Auth {
  readonly #schemes: ReadonlyMap<string, Scheme>;
  readonly #options: AuthOptions;
  readonly #granted = new WeakMap<readonly Acl[], WeakMap<readonly Id[], number>>();

  constructor(options: AuthOptions = {}) {
    this.#options = options;
    this.#schemes = new Map<string, Scheme>([
      ['ip', ip],
      ...(options.digestSchemeEnabled === false ? [] : [['digest', digest] as const]),
      ...(options.extraSchemes ?? []).map((name): [string, Scheme] => [name, extraSchemes[name]]),
    ]);
  }

  /** What an auth packet proves on a link that has proved `known`, or null when it proves nothing. */
  prove(
    scheme: string,
    credentials: Buffer | null,
    address: string,
    known: readonly Id[] = [],
  ): readonly Id[] | null {
    if (scheme === 'ip') return [{ scheme, id: address }];
    if (scheme === 'x509') {
      const own = known.filter((id) => id.scheme === scheme); // the certificate says what it said
      return own.length > 0 ? own : null;
    }
    if (scheme === 'ensemble' && this.#options.ensembleNames !== undefined) return [];
    if (scheme !== 'digest' || credentials === null || !this.#schemes.has(scheme)) return null;
    const { superDigest, digestAlgorithm } = this.#options;
    const id = digestId(credentials.toString('utf8'), digestAlgorithm);
    return superDigest !== undefined && sameDigest(id.id, superDigest) ? [superId, id] : [id];
  }

  /**
   * The user whose password `credentials` of the scheme `digest` may be a guess at: the super user, or one
   * that `acl` names. Undefined for any other name.
   */
  guessedAt(credentials: Buffer | null, acl: readonly Acl[] = []): string | undefined {
    const user = userOf(credentials?.toString('utf8') ?? '');
    const { superDigest } = this.#options;
    if (superDigest !== undefined && user === userOf(superDigest)) return user;
    return acl.some(({ id }) => id.scheme === 'digest' && userOf(id.id) === user)
      ? user
      : undefined;
  }

  /** Whether a client by the scheme `ensemble` means another server than this one. */
  meansAnother(scheme: string, credentials: Buffer | null): boolean {
    const { ensembleNames = [] } = this.#options;
    if (scheme !== 'ensemble' || ensembleNames.length === 0 || !credentials?.length) return false;
    return !ensembleNames.includes(credentials.toString('utf8'));
  }

  /** Whether somebody has the super user's name and not the password: to Apache an id like any other. */
  isFalseSuper(proved: readonly Id[]): boolean {
    const { superDigest } = this.#options;
    if (superDigest === undefined || proved.includes(superId)) return false;
    return proved.some(
      ({ scheme, id }) => scheme === 'digest' && userOf(id) === userOf(superDigest),
    );
  }

  /** What certificates prove, and the super user's id where its certificate is among them. */
  withSuper(ids: readonly Id[]): readonly Id[] {
    const { x509SuperUser } = this.#options;
    // A certificate may have no subject, and a file a key without a value: nobody is meant by that.
    const isSuper = ({ scheme, id }: Id) => scheme === 'x509' && id !== '' && id === x509SuperUser;
    return ids.some(isSuper) ? [...ids, superId] : ids;
  }

  permits(acl: readonly Acl[], perms: number, ids: readonly Id[]): boolean {
    if (acl === openAcl || acl.length === 0 || this.#options.skipAcl) return true;
    for (const { scheme } of ids) if (scheme === 'super') return true;
    if (acl.length * ids.length > comparedMax) return (this.#grantedTo(acl, ids) & perms) !== 0;
    for (const { perms: granted, id } of acl) {
      if ((granted & perms) !== 0 && this.#isMeant(id, ids)) return true;
    }
    return false;
  }

  /** All that the ACL permits to who has these ids. Both are lists that nobody changes. */
  #grantedTo(acl: readonly Acl[], ids: readonly Id[]): number {
    const byIds = this.#granted.get(acl) ?? new WeakMap<readonly Id[], number>();
    const known = byIds.get(ids);
    if (known !== undefined) return known;
    const byScheme = new Map<string, Set<string>>();
    for (const { scheme, id } of ids) {
      const own = byScheme.get(scheme);
      if (own === undefined) byScheme.set(scheme, new Set([id]));
      else own.add(id);
    }
    let granted = 0;
    for (const { perms, id } of acl) if (this.#isAmong(id, byScheme)) granted |= perms;
    this.#granted.set(acl, byIds.set(ids, granted));
    return granted;
  }

  #isMeant({ scheme: name, id }: Id, ids: readonly Id[]): boolean {
    if (name === 'world' && id === 'anyone') return true;
    const scheme = this.#schemes.get(name);
    if (scheme === undefined) return false;
    for (const own of ids) if (own.scheme === name && scheme.matches(own.id, id)) return true;
    return false;
  }

  #isAmong({ scheme, id }: Id, ids: ReadonlyMap<string, ReadonlySet<string>>): boolean {
    if (scheme === 'world' && id === 'anyone') return true;
    const own = ids.get(scheme);
    return own !== undefined && (this.#schemes.get(scheme)?.among(own, id) ?? false);
  }

  /**
   * An ACL as it is kept: no duplicates, `auth` replaced by who asked. Null: not a legal one. Of more than
   * `entriesMax` it has one more: who has proved a hundred ids makes millions of entries of one frame.
   */
  fixUp(acl: readonly Acl[], ids: readonly Id[], entriesMax = Infinity): readonly Acl[] | null {
    if (acl === openAcl || (acl.length === 1 && isOpen(acl[0]!))) return openAcl;
    if (acl.length === 0) return null;
    const fixed: Acl[] = [];
    const add = (entry: Acl) => {
      if (fixed.length <= entriesMax) fixed.push(entry);
    };
    for (const entry of distinct(acl)) {
      const { perms, id } = entry;
      if (id.scheme === 'world' && id.id === 'anyone') {
        add(entry);
      } else if (id.scheme === 'auth') {
        const proved = ids.filter((own) => this.#schemes.get(own.scheme)?.proves);
        if (proved.length === 0) return null;
        if (fixed.length <= entriesMax) for (const own of proved) add({ perms, id: own });
      } else if (this.#schemes.get(id.scheme)?.valid(id.id)) {
        add(entry);
      } else {
        return null;
      }
    }
    return fixed;
  }

  user(id: Id): string {
    return this.#schemes.get(id.scheme)?.user(id.id) ?? '';
  }
}

/** Each entry once, where it stands first. A frame has room for fifty thousand, so none is compared with all others. */
function distinct(acl: readonly Acl[]): readonly Acl[] {
  if (acl.length === 1) return acl;
  const seen = new Set<string>();
  return acl.filter(({ perms, id }) => {
    const before = seen.size;
    return seen.add(JSON.stringify([perms, id.scheme, id.id])).size > before;
  });
}

function isOpen({ perms, id }: Acl): boolean {
  return perms === 31 && id.scheme === 'world' && id.id === 'anyone';
}
