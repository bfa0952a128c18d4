/**
 * Every difference between Apache ZooKeeper 3.9.5 and ours that is allowed, with its reason. Nothing
 * else is: the comparison has no exceptions but those named here.
 */

import type { MultiPart } from '../../src/protocol/index.ts';
import type { Call, Command } from './script.ts';

/** What can't be equal, and what is compared in its place. normalise.ts does so. */
export const byNature = {
  'session ids and passwords':
    'made from the time. Compared: which session it is, and that its password stays the same',
  zxids: 'counted from the start of the script, since that reads better; both servers start at 0',
  times:
    "clocks. Compared: that a node's times are those of the txns which its zxids name, and recent",
  'nonces of SASL': 'made at random',
  'children, ephemerals, whoAmI': 'hash sets in Apache: compared without their order',
  'what `auth` in an ACL becomes':
    'the ids of a link are a hash set in Apache: neighbours are sorted',
  "events of a session's end":
    'its ephemeral nodes are a hash set in Apache: compared without order',
} as const;

export interface Allowed {
  readonly name: string;
  readonly reason: string;
  applies(command: Command | undefined, apache: string, ours: string): boolean;
}

export const allowed: readonly Allowed[] = [
  {
    name: 'text beyond the first plane, or that is no UTF-8',
    reason:
      'Java writes each half of a surrogate pair by itself, which is no UTF-8 and which no client reads ' +
      'back, its own included; and it reads bytes that are no UTF-8 as fewer U+FFFD than others do. No ' +
      "node can have such a name; it can only stand in a watch that is set again, a sync's path or an id",
    applies: (_, apache, ours) => apache.replace(unknown, '?') === ours.replace(unknown, '?'),
  },
];

const unknown = /\ufffd+|[\u{10000}-\u{10ffff}]+/gu;

/** What is never sent, since Apache does not survive it or says something else each time. */
export const neverSent: readonly {
  readonly name: string;
  readonly reason: string;
  is(call: Call): boolean;
}[] = [
  {
    name: 'a createSession on a link that has one',
    reason:
      'Apache tracks the session once more, with the timeout that the frame asks for, and sends a second ' +
      'welcome in the place of a reply. Ours does not know the op: UNIMPLEMENTED, and the link is closed',
    is: ({ op }) => op === 'createSession' || op === -10,
  },
  {
    name: 'a createTTL without a TTL mode',
    reason:
      'Apache 3.9.5 logs a txn with a ttl of -1 that its tree then fails on: the server stops, and ' +
      'does not start again on that log. Ours answers BAD_ARGUMENTS',
    is: ({ op, request }) =>
      op === 'createTTL' && ((request ?? {}) as { ttl: bigint }).ttl < 0n && !isTtlMode(request),
  },
  {
    name: "a quota's usage that can't be read",
    reason:
      'Apache parses it when the next node below is made, changed or deleted, after the txn is logged: the ' +
      'server stops, and does not start again on that log. Ours counts from nothing',
    is: ({ op, request }) =>
      op === 'multi'
        ? (request as readonly MultiPart[]).some((part) => spoilsUsage(part.request))
        : spoilsUsage(request),
  },
  {
    name: "limits of a quota that are no path's",
    reason:
      'Apache stops when they are made or deleted, and does not start again on that log. Ours refuses them ' +
      'with BAD_ARGUMENTS',
    is: ({ op, request }) =>
      op === 'multi'
        ? (request as readonly MultiPart[]).some((part) => areLimitsOfNothing(part.request))
        : areLimitsOfNothing(request),
  },
  {
    name: 'limits of a quota that are an ephemeral node',
    reason:
      'what is deleted at the end of a session after the limits is not counted any more, and Apache deletes ' +
      'in the order of a Java hash set, ours in that of creation: the usage comes to other sums',
    is: ({ op, request }) =>
      op === 'multi'
        ? (request as readonly MultiPart[]).some((part) => isFleetingLimits(part.request))
        : isFleetingLimits(request),
  },
  {
    name: 'a null list of ACLs in a multi',
    reason:
      'Apache answers MARSHALLING_ERROR to all of the multi, and takes no zxid for it; ours reads an empty ' +
      'list: INVALID_ACL for that part, as both answer to a create by itself. A changed byte makes one of a ' +
      'setData of any version, as what stands there for the version is then the length of the list',
    is: ({ op, request, poke }) =>
      op === 'multi' &&
      poke?.byte === createByte &&
      (request as readonly MultiPart[]).some(isOfAnyVersion),
  },
];

const createByte = 1;

const isOfAnyVersion = ({ op, request }: MultiPart): boolean =>
  op === 'setData' && request.version === -1;

function areLimitsOfNothing(request: unknown): boolean {
  const { path = '' } = (request ?? {}) as { path?: string };
  return /^\/zookeeper.{0,6}\/zookeeper_limits$/.test(path);
}

function isFleetingLimits(request: unknown): boolean {
  const { path, flags } = (request ?? {}) as { path?: string; flags?: number };
  return path?.endsWith('/zookeeper_limits') === true && (flags === 1 || flags === 3);
}

function spoilsUsage(request: unknown): boolean {
  const { path, data } = (request ?? {}) as { path?: string; data?: Buffer | null };
  if (path === undefined || data === undefined || !path.endsWith('/zookeeper_stats')) return false;
  return data === null || !/^count=-?\d+,bytes=-?\d+/.test(data.toString());
}

const isTtlMode = (request: unknown): boolean =>
  [5, 6].includes((request as { flags: number }).flags);
