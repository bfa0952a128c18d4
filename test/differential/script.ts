/**
 * What is done to both servers: a list of commands over a few slots, each of which holds a link and
 * the session that was last on it. Plain data, so that a script can be cut down and printed.
 */

import type { MultiPart, OpName } from '../../src/protocol/index.ts';

export interface Call {
  readonly kind: 'call';
  readonly slot: number;
  /** A name of the table, or a number that is in none. */
  readonly op: OpName | number;
  readonly request: Readonly<Record<string, unknown>> | readonly MultiPart[] | null;
  /** The request's own, where it is not the next in turn. */
  readonly xid?: number;
  /** So many bytes are missing from its end, or, below 0, were added there. */
  readonly cut?: number;
  /** This byte of the record, counted round and round, is another one. */
  readonly poke?: { readonly at: number; readonly byte: number };
  /** Bytes to send in place of the record. */
  readonly hex?: string;
}

export type Password = 'right' | 'wrong' | 'short' | 'null';

export type Command =
  | Call
  /** A new link and a new session. `old`: without the byte that says whether read-only will do. */
  | {
      readonly kind: 'connect';
      readonly slot: number;
      readonly timeOut: number;
      readonly old: boolean;
      readonly ahead?: boolean;
      /** Sent right behind the handshake, before it is answered. */
      readonly eager?: readonly Call[];
    }
  /** A new link whose first frame is this, and no more. */
  | { readonly kind: 'greet'; readonly slot: number; readonly hex: string }
  /** A new link for the session that `of` had. The old link, if there is one, stays as it is. */
  | {
      readonly kind: 'reconnect';
      readonly slot: number;
      readonly of: number;
      readonly password: Password;
      readonly timeOut: number;
      readonly old: boolean;
      /** Says to have seen more than there is. */
      readonly ahead: boolean;
    }
  /** The client's side goes away without a word. */
  | { readonly kind: 'drop'; readonly slot: number }
  /** Bytes that are no request: a frame too short, a length that can't be. */
  | { readonly kind: 'bytes'; readonly slot: number; readonly hex: string };

export interface Script {
  readonly seed: number;
  /** Calls of one slot that follow one another are sent without waiting for replies. */
  readonly pipelined: boolean;
  readonly commands: readonly Command[];
}

/** Whether `next` may be sent before `first` is answered. The end of a session ends the row, too. */
export function goesWith(first: Command, next: Command): boolean {
  return (
    next.kind === 'call' &&
    next.slot === first.slot &&
    (first as Call).op !== 'closeSession' &&
    (next.op === 'closeSession' || !standsAlone(next))
  );
}

/**
 * Those which Apache answers from another thread than the rest, or which end a link: they are sent
 * alone, since only then is there one order in which to answer. A setACL is one of them because Apache
 * checks the writes behind it against the old ACL until it is applied (PrepRequestProcessor leaves the
 * ACL of the changed record as it was), and how long that is depends on its threads.
 */
export function standsAlone(command: Command): boolean {
  if (command.kind !== 'call' || typeof command.op === 'number' || alone.has(command.op))
    return true;
  const { op, request } = command;
  if (op !== 'multi') return isTornContainer(op, request);
  return (request as readonly MultiPart[]).some((part) => isTornContainer(part.op, part.request));
}

/** To Apache it is an ephemeral node until it is applied, and a container from then on. */
function isTornContainer(op: string, request: unknown): boolean {
  return op === 'createContainer' && [1, 3].includes((request as { flags: number }).flags);
}

const alone: ReadonlySet<OpName> = new Set([
  'auth',
  'sasl',
  'check',
  'setACL',
  'createSession',
  'closeSession',
] as const);

export function printCommand(command: Command): string {
  const { kind, slot, ...rest } = command;
  if (kind !== 'call') return `#${slot} ${kind} ${print(rest)}`;
  const { op, request, ...odd } = rest as Omit<Call, 'kind' | 'slot'>;
  const oddities = Object.keys(odd).length > 0 ? ` ${print(odd)}` : '';
  return `#${slot} ${typeof op === 'number' ? `op ${op}` : op} ${print(request)}${oddities}`;
}

/** As a literal, on one line, with what stands everywhere said in a word. */
function print(value: unknown): string {
  if (Buffer.isBuffer(value)) return `<${value.length > 60 ? `${value.length} bytes` : value}>`;
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value !== 'object' || value === null) return String(value);
  if (Array.isArray(value)) return `[${value.map(print).join(', ')}]`;
  const fields = Object.entries(value).map(([key, field]) => `${key}: ${print(field)}`);
  return `{ ${fields.join(', ')} }`.replace(openText, 'open');
}

const openText = 'acl: [{ perms: 31, id: { scheme: "world", id: "anyone" } }]';

export function printScript(script: Script): string {
  const mode = script.pipelined ? 'pipelined' : 'step by step';
  return [`${mode}:`, ...script.commands.map((command) => `  ${printCommand(command)}`)].join('\n');
}
