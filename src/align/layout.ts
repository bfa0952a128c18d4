/**
 * What an aligned group keeps in ZooKeeper, node by node: paths, and what is written in them.
 *
 *   /align/[group]
 *     config                            the rule; whoever joins first makes it, people change it
 *     plan                              all topics and partitions; the leader's, for people
 *     limit                             how far everybody may go, and the last cut; the leader's
 *     called                            the last boundary whose callback has ended; the leader's
 *     election/_c_…-latch-0000000000    ephemeral; who leads
 *     members/[id]@[session]            ephemeral; where each partition of that member is; those that
 *     members/[id]@[session].1          do not fit there stand in further ones
 *     cuts/[end]-[epoch]                offsets of a cut; of a large one the parts lie below it
 *     handovers/[topic]/[partition]     where the last owner let go of it
 *
 * Everything but `election` and `members` stays when all have gone: it is what a restart begins with.
 * Times are milliseconds since 1970 of event time, but for `_ms` of the calendar; epochs and offsets
 * are decimal text, since JSON's numbers end at 2^53.
 *
 * In: text. Out: values, or a LayoutError that says what is wrong where. Fields that are not known are
 * left alone.
 */

import { LayoutError, type PartitionId, PartitionSum, toCount } from '../kafka/index.ts';
import type { PartitionReport, PartitionState } from './group-clock.ts';
import type { Pass } from './partition-clock.ts';
import { type Pace, type Rule, withHold } from './rule.ts';

export const alignRoot = '/align';

/** The paths of one group. */
export function alignPaths(group: string, root = alignRoot) {
  const base = `${root}/${group}`;
  return {
    base,
    config: `${base}/config`,
    plan: `${base}/plan`,
    limit: `${base}/limit`,
    called: `${base}/called`,
    election: `${base}/election`,
    members: `${base}/members`,
    cuts: `${base}/cuts`,
    handovers: `${base}/handovers`,
    member: (name: string) => `${base}/members/${name}`,
    cut: (node: string) => `${base}/cuts/${node}`,
    handover: ({ topic, partition }: PartitionId) => `${base}/handovers/${topic}/${partition}`,
  };
}
export type AlignPaths = ReturnType<typeof alignPaths>;

/** A cut: its name under `cuts`, and in how many parts it lies; 0: in the node itself. */
export interface CutPointer {
  readonly end: number;
  /** Null: the group began here, and nothing of it came before. */
  readonly start: number | null;
  readonly node: string;
  readonly parts: number;
}

export interface StoredLimit {
  /** Of the leader who wrote it. */
  readonly epoch: bigint;
  /** Null before the first is known. */
  readonly limitMs: number | null;
  readonly rule: Rule;
  readonly cut: CutPointer | null;
  readonly isFinished: boolean;
  /** By the leader's calendar; for people. */
  readonly movedAtMs: number;
}

export interface StoredMember {
  readonly id: string;
  readonly partitions: ReadonlyMap<string, PartitionReport>;
  /** Records handed out so far, and the share of time with nothing to hand out but what is too early. */
  readonly records: number;
  readonly waitingShare: number;
}

export interface StoredCut {
  readonly epoch: bigint;
  readonly start: number | null;
  readonly end: number;
  readonly offsets: ReadonlyMap<string, bigint>;
  /** Every partition was at its end: no record that is done lies at or beyond this boundary. */
  readonly isFinal: boolean;
}

export interface Handover {
  /** Of the ownership that ended. */
  readonly epoch: bigint;
  readonly offset: bigint;
  readonly positionMs: number | null;
  /** The latest of the records that are done, as far as it was known. */
  readonly lastMs: number | null;
  readonly reached: readonly Pass[];
}

// ── the rule ────────────────────────────────────────────────────────────────────────────────────

export function formatRule(rule: Rule): string {
  return JSON.stringify({ version: 1, ...ruleJson(rule) });
}

function ruleJson(rule: Rule) {
  const common = { mode: rule.mode, step_ms: rule.stepMs };
  const hold = rule.holdMs === undefined ? {} : { hold_ms: rule.holdMs };
  if (rule.mode === 'period') return { ...common, look_ahead: rule.lookAhead, ...hold };
  return rule.mode === 'drift'
    ? { ...common, drift_ms: rule.driftMs, ...hold }
    : { ...common, ...hold };
}

export function parseRule(data: Uint8Array | null, path: string): Rule {
  return reading(data, path, ruleFrom);
}

function ruleFrom(json: Json): Rule {
  const hold = json.hold_ms === undefined || json.hold_ms === null ? null : number(json, 'hold_ms');
  return withHold(paceFrom(json), hold);
}

function paceFrom(json: Json): Pace {
  const stepMs = number(json, 'step_ms');
  if (stepMs < 1) throw new Error('step_ms: 1 or more is wanted');
  switch (json.mode) {
    case 'period':
      return { mode: 'period', stepMs, lookAhead: number(json, 'look_ahead') };
    case 'drift':
      return { mode: 'drift', stepMs, driftMs: number(json, 'drift_ms') };
    case 'off':
      return { mode: 'off', stepMs };
    default:
      throw new Error('mode: period, drift or off is wanted');
  }
}

// ── the limit ───────────────────────────────────────────────────────────────────────────────────

export function formatLimit(limit: StoredLimit): string {
  const { epoch, limitMs, rule, cut, isFinished, movedAtMs } = limit;
  return JSON.stringify({
    version: 1,
    epoch: String(epoch),
    limit: limitMs,
    rule: ruleJson(rule),
    cut,
    finished: isFinished,
    moved_ms: movedAtMs,
  });
}

export function parseLimit(data: Uint8Array | null, path: string): StoredLimit {
  return reading(data, path, (json) => ({
    epoch: long(json.epoch, 'epoch'),
    limitMs: json.limit === null ? null : number(json, 'limit'),
    rule: ruleFrom(object(json, 'rule')),
    cut: json.cut === null || json.cut === undefined ? null : pointerFrom(object(json, 'cut')),
    isFinished: json.finished === true,
    movedAtMs: number(json, 'moved_ms'),
  }));
}

/** Of a cut that fills each of them: far beyond what any group has partitions for. */
const cutPartsMax = 1_000;

function pointerFrom(json: Json): CutPointer {
  const start = json.start === null ? null : number(json, 'start');
  return {
    end: number(json, 'end'),
    start,
    node: text(json, 'node'),
    parts: count(json, 'parts', cutPartsMax),
  };
}

// ── members ─────────────────────────────────────────────────────────────────────────────────────

// biome-ignore format: a table is read down its columns
const stateLetters: Readonly<Record<PartitionState, string>> = {
  reading: 'r', idle: 'i', finished: 'f', stopped: 's',
};
const statesByLetter = new Map(
  Object.entries(stateLetters).map(([state, letter]) => [letter, state as PartitionState]),
);

/** One text for each node: a member of thousands of partitions needs several. */
export function formatMember({ id, partitions, records, waitingShare }: StoredMember): string[] {
  const waiting = Math.round(waitingShare * 1_000) / 1_000;
  const all = [...partitions].map(([key, one]) => ({ key, json: reportJson(one) }));
  const parts = inNodes(all, ({ key, json }) => key.length + JSON.stringify(json).length);
  return parts.map((part) =>
    JSON.stringify({
      version: 1,
      member: id,
      records,
      waiting,
      partitions: Object.fromEntries(part.map(({ key, json }) => [key, json])),
    }),
  );
}

function reportJson({ epoch, state, positionMs, offset, reached, aheadMs }: PartitionReport) {
  return {
    e: String(epoch),
    s: stateLetters[state],
    t: positionMs,
    o: String(offset),
    ...(reached.length > 0 && { c: passesJson(reached) }),
    ...(aheadMs !== undefined && { a: aheadMs }),
  };
}

/** The nodes of a member: the first, and what did not fit there. */
export const memberNode = (id: string, sessionId: bigint, part: number) =>
  `${id}@${sessionId.toString(16)}${part === 0 ? '' : `.${part}`}`;

/** Which member and session a node is of, whichever part it is. */
export const memberOf = (name: string) => name.replace(/\.\d+$/, '');

export function parseMember(data: Uint8Array | null, path: string): StoredMember {
  return reading(data, path, (json) => ({
    id: text(json, 'member'),
    records: number(json, 'records'),
    waitingShare: number(json, 'waiting'),
    partitions: new Map(
      Object.entries(object(json, 'partitions')).map(([key, value]) => [
        key,
        reportFrom(value as Json),
      ]),
    ),
  }));
}

function reportFrom(json: Json): PartitionReport {
  const state = statesByLetter.get(text(json, 's'));
  if (state === undefined) throw new Error(`s: ${json.s} is no state`);
  return {
    epoch: long(json.e, 'e'),
    state,
    positionMs: json.t === null ? null : number(json, 't'),
    offset: long(json.o, 'o'),
    reached: passesFrom(json.c),
    ...(json.a !== undefined && { aheadMs: number(json, 'a') }),
  };
}

const passesJson = (passes: readonly Pass[]) =>
  passes.map(({ end, offset }) => [end, String(offset)]);

function passesFrom(json: unknown): Pass[] {
  if (json === undefined) return [];
  return (json as [number, string][]).map(([end, offset]) => ({ end, offset: long(offset, 'c') }));
}

// ── cuts and handovers ──────────────────────────────────────────────────────────────────────────

/** Ends of the same length sort as text, and from 2001 to 2286 they have the same. */
export const cutNode = (end: number, epoch: bigint) => `${end}-${epoch}`;

export function formatCut({ epoch, start, end, offsets, isFinal }: StoredCut): string {
  const entries = [...offsets].map(([key, offset]) => [key, String(offset)]);
  return JSON.stringify({
    version: 1,
    epoch: String(epoch),
    start,
    end,
    ...(isFinal && { final: true }),
    offsets: Object.fromEntries(entries),
  });
}

export function parseCut(data: Uint8Array | null, path: string): StoredCut {
  return reading(data, path, (json) => ({
    epoch: long(json.epoch, 'epoch'),
    start: json.start === null ? null : number(json, 'start'),
    end: number(json, 'end'),
    isFinal: json.final === true,
    offsets: new Map(
      Object.entries(object(json, 'offsets')).map(([key, offset]) => [key, long(offset, key)]),
    ),
  }));
}

export function formatHandover(handover: Handover): string {
  const { epoch, offset, positionMs, lastMs, reached } = handover;
  return JSON.stringify({
    version: 1,
    epoch: String(epoch),
    offset: String(offset),
    position: positionMs,
    last: lastMs,
    reached: passesJson(reached),
  });
}

export function parseHandover(data: Uint8Array | null, path: string): Handover {
  return reading(data, path, (json) => ({
    epoch: long(json.epoch, 'epoch'),
    offset: long(json.offset, 'offset'),
    positionMs: json.position === null ? null : number(json, 'position'),
    lastMs: json.last === null || json.last === undefined ? null : number(json, 'last'),
    reached: passesFrom(json.reached),
  }));
}

export const formatCalled = (epoch: bigint, end: number) =>
  JSON.stringify({ version: 1, epoch: String(epoch), end });

export function parseCalled(data: Uint8Array | null, path: string): number {
  return reading(data, path, (json) => number(json, 'end'));
}

/** `{"version":1,"epoch":"7","topics":{"orders":4,"logs":["29-0","29-1"]}}`: 4 stands for 0 to 3. */
export function formatPlan(epoch: bigint, topics: ReadonlyMap<string, readonly string[]>): string {
  const entries = [...topics].map(([topic, names]) => {
    const isCounted = names.every((name, i) => name === String(i));
    return [topic, isCounted ? names.length : names];
  });
  return JSON.stringify({ version: 1, epoch: String(epoch), topics: Object.fromEntries(entries) });
}

export function parsePlan(data: Uint8Array | null, path: string): Map<string, string[]> {
  return reading(data, path, (json) => {
    const entries = Object.entries(object(json, 'topics'));
    const sum = new PartitionSum();
    return new Map(entries.map(([topic, names]) => [topic, namesFrom(topic, names, sum)]));
  });
}

function namesFrom(topic: string, names: unknown, sum: PartitionSum): string[] {
  if (Array.isArray(names)) return names.map(String);
  const count = toCount(names, `topics.${topic}`);
  sum.add(count, `topics.${topic}`);
  return Array.from({ length: count }, (_, i) => String(i));
}

// ── size ────────────────────────────────────────────────────────────────────────────────────────

/** Half of what a server takes in one request unless it is told otherwise. */
const nodeBytesMax = 512 * 1024;

/** Spread over as few nodes as hold them, in their order; at least one. */
export function inNodes<T>(all: readonly T[], bytesOf: (one: T) => number): T[][] {
  const parts: T[][] = [[]];
  let bytes = 0;
  for (const one of all) {
    const more = bytesOf(one) + 8; // quotes, a colon, a comma
    if (bytes > 0 && bytes + more > nodeBytesMax) {
      parts.push([]);
      bytes = 0;
    }
    parts.at(-1)!.push(one);
    bytes += more;
  }
  return parts;
}

// ── reading JSON ────────────────────────────────────────────────────────────────────────────────

type Json = Readonly<Record<string, unknown>>;

function reading<T>(data: Uint8Array | null, path: string, from: (json: Json) => T): T {
  const content = data === null ? null : Buffer.from(data).toString('utf8');
  try {
    const json: unknown = JSON.parse(content ?? '');
    if (typeof json !== 'object' || json === null) throw new Error('a JSON object is wanted');
    return from(json as Json);
  } catch (error) {
    throw new LayoutError({ path, why: (error as Error).message, content });
  }
}

function number(json: Json, name: string): number {
  const value = json[name];
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw new Error(`${name}: a number is wanted`);
}

function count(json: Json, name: string, most: number): number {
  const value = number(json, name);
  if (Number.isInteger(value) && value >= 0 && value <= most) return value;
  throw new Error(`${name} must be a whole number from 0 to ${most}`);
}

/** A jute long as decimal text. */
function long(value: unknown, name: string): bigint {
  if (typeof value === 'string' && /^-?\d{1,19}$/.test(value)) return BigInt(value);
  throw new Error(`${name} must be a decimal number of at most 19 digits`);
}

function text(json: Json, name: string): string {
  const value = json[name];
  if (typeof value === 'string') return value;
  throw new Error(`${name}: text is wanted`);
}

function object(json: Json, name: string): Json {
  const value = json[name];
  if (typeof value === 'object' && value !== null) return value as Json;
  throw new Error(`${name}: an object is wanted`);
}
