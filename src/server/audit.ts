/**
 * The audit log: who changed what, one line for each, as Apache writes it (AuditEvent).
 *
 *   session=0x1…  user=127.0.0.1  ip=127.0.0.1  operation=create  znode=/a  znode_type=persistent  result=success
 *
 * In: writes as they are applied. Out: lines, with tabs between the pairs. Reads are not audited. Text
 * that a client chose is escaped, so that nobody can forge a line.
 */

import { ProtocolError, Reader } from '../jute/index.ts';
import {
  type Acl,
  createModes,
  escaped,
  type Id,
  MultiRequest,
  type OpName,
  ops,
  printable,
} from '../protocol/index.ts';
import type { Applied } from '../tree/index.ts';
import type { Auth } from './auth.ts';
import type { Asked, Call } from './call.ts';
import { userName } from './four-letter-words.ts';
import { hexId } from './log-lines.ts';

/** A write that was refused before it was a txn, and who asked. */
export type Refused = Pick<Call, 'op' | 'connection' | 'session'> & { readonly asked: Asked };

type Result = 'success' | 'failure' | 'invoked';

interface Event {
  readonly session?: string | undefined;
  readonly user?: string | undefined;
  readonly ip?: string | undefined;
  readonly operation: string;
  readonly znode?: string | undefined;
  readonly znode_type?: string | undefined;
  readonly acl?: string | undefined;
}

// biome-ignore format: a table is read down its columns
const operations: { readonly [N in OpName]?: string } = {
  create:  'create', create2: 'create', createContainer: 'create', createTTL: 'create',
  delete:  'delete', deleteContainer: 'delete',
  setData: 'setData',
  setACL:  'setAcl',
  multi:   'multiOperation',
  reconfig: 'reconfig',
};

const expired = 'ephemeralZNodeDeletionOnSessionCloseOrExpire';

/** `PERSISTENT_SEQUENTIAL` of Java's CreateMode, in small letters. */
const modes = new Map<number, string>(
  Object.entries(createModes).map(([name, { flags }]) => [
    flags,
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`).replace('ttl', 'with_ttl'),
  ]),
);

export class Audit {
  readonly #write: (line: string) => void;
  readonly #auth: () => Auth;

  constructor(write: (line: string) => void, auth: () => Auth) {
    this.#write = write;
    this.#auth = auth;
  }

  serverStarted(): void {
    this.#line({ user: userName(), operation: 'serverStart' }, 'success');
  }

  startFailed(): void {
    this.#line({ user: userName(), operation: 'serverStart' }, 'failure');
  }

  serverStops(): void {
    this.#line({ user: userName(), operation: 'serverStop' }, 'invoked');
  }

  committed(call: Call, applied: Applied): void {
    if (call.body.type === 'closeSession') {
      this.#closed(call.head.clientId, call.body.txn.paths2Delete ?? []);
    } else if (call.aheadOf !== undefined) {
      const paths = (applied.parts ?? []).map(({ path }) => path);
      this.#closed(call.aheadOf, paths);
    }
    const operation = operations[call.op];
    if (operation === undefined || call.asked === undefined) return;
    if (call.op === 'multi') this.#multi(call, call.asked.request, applied);
    else this.#single(call, call.asked.request, applied, operation);
  }

  /** A write that was refused before it was a txn. */
  refused(call: Refused): void {
    const operation = operations[call.op];
    if (operation !== undefined) this.#single(call, call.asked.request, undefined, operation);
  }

  #single(who: Asking, request: Buffer, applied: Applied | undefined, operation: string): void {
    const known: Known = who.op === 'multi' ? {} : asked(who.op, request);
    const { path, flags, acl } = known;
    const isOk = applied?.err === 0 && applied.type !== 'error';
    const event = {
      ...this.#who(who),
      operation,
      znode: isOk ? applied.path : path,
      znode_type: operation === 'create' ? modes.get(flags ?? 0) : undefined,
      acl: who.op === 'setACL' && acl !== undefined ? aclText(acl) : undefined,
    };
    this.#line(event, isOk ? 'success' : 'failure');
  }

  #multi(call: Call, request: Buffer, applied: Applied): void {
    const who = this.#who(call);
    const parts = applied.parts ?? [];
    if (applied.type === 'error' || parts.some(({ type }) => type === 'error')) {
      this.#line({ ...who, operation: 'multiOperation' }, 'failure');
      return;
    }
    const requested = MultiRequest.read(new Reader(request));
    for (const [i, part] of parts.entries()) {
      if (part.type === 'check') continue;
      const operation = operations[part.type as OpName];
      const flags = (requested[i]?.request as { flags?: number } | undefined)?.flags;
      const znode_type = operation === 'create' ? modes.get(flags ?? 0) : undefined;
      if (operation !== undefined) {
        this.#line({ ...who, operation, znode: part.path, znode_type }, 'success');
      }
    }
  }

  #closed(id: bigint, paths: readonly (string | null)[]): void {
    const session = hexId(id);
    for (const znode of paths) {
      if (znode === null) continue;
      this.#line({ session, user: userName(), operation: expired, znode }, 'success');
    }
  }

  #who({ connection, session, asked }: Asking) {
    return {
      session: session === undefined ? undefined : hexId(session.id),
      user: this.#users(asked?.ids ?? []),
      ip: connection?.wire.address,
    };
  }

  #users(ids: readonly Id[]): string | undefined {
    const names = ids.map((id) => this.#auth().user(id)).filter((name) => name.trim() !== '');
    // Each is cut: with every line there would be room for as much as a link may prove.
    return names.length === 0 ? undefined : names.map(printable).join(',');
  }

  #line(event: Event, result: Result): void {
    const order = ['session', 'user', 'ip', 'operation', 'znode', 'znode_type', 'acl'] as const;
    const pairs = order
      .filter((name) => event[name] !== undefined)
      .map((name) => `${name}=${escaped(event[name]!)}`);
    this.#write([...pairs, `result=${result}`].join('\t'));
  }
}

type Asking = Pick<Call, 'op' | 'connection' | 'session' | 'asked'>;

interface Known {
  readonly path?: string | undefined;
  readonly flags?: number;
  readonly acl?: readonly Acl[];
}

/** As far as it can be read: a request that made no sense has no path to show. */
function asked(op: OpName, request: Buffer): Known {
  try {
    return ops[op].request.read(new Reader(request)) as Known;
  } catch (error) {
    if (error instanceof ProtocolError) return {};
    throw error;
  }
}

/**
 * `digest:ann:x:cdrwa,world:anyone:r`. Apache puts no comma between two, and shows the hash of the
 * password.
 */
function aclText(acl: readonly Acl[]): string {
  return acl
    .map(({ perms, id }) => {
      const shown = id.scheme === 'digest' ? id.id?.replace(/:[\s\S]*$/, ':x') : id.id;
      return `${id.scheme}:${shown}:${permText(perms)}`;
    })
    .join(',');
}

function permText(perms: number): string {
  const letters: readonly [bit: number, letter: string][] = [
    [4, 'c'],
    [8, 'd'],
    [1, 'r'],
    [2, 'w'],
    [16, 'a'],
  ];
  return letters.map(([bit, letter]) => ((perms & bit) === 0 ? '' : letter)).join('');
}
