/**
 * The Alignment page: where each partition of a group is in event time, where the limit is, who holds it
 * back, and how fast the limit moved for as long as the console has looked.
 */

import {
  type AlignSnapshot,
  alignPaths,
  listAlignments,
  parseCut,
  readAlignment,
  type SeenPartition,
} from '../align/index.ts';
import type { CallOptions, Client } from '../client/index.ts';
import type { Clock } from '../support/index.ts';
import { ConsoleError } from './console-error.ts';
import { endsOf } from './group-ends.ts';
import { hex } from './node-text.ts';
import type { Ends } from './sources.ts';
import { orNull } from './tree.ts';
import type { AlignmentsView, AlignmentView, AlignPartition } from './views.ts';

type Progress = AlignmentView['progress'][number];

const groupsMax = 200;
const progressMax = 2_000;
const cutsShown = 20;
const paceMax = 60;
/** More than these are not asked for their ends. */
const leftPartitionsMax = 2_000;

export class Alignment {
  readonly #client: Client;
  readonly #clock: Clock;
  readonly #ends: () => Ends | undefined;
  /** Limits as they moved, by group; the group that was looked at longest ago goes first. */
  readonly #progress = new Map<string, Progress[]>();

  /** How many records were read, by group, oldest first. */
  readonly #pace = new Map<string, { readonly atMs: number; readonly records: number }[]>();

  constructor(client: Client, clock: Clock, ends: () => Ends | undefined = () => undefined) {
    this.#client = client;
    this.#clock = clock;
    this.#ends = ends;
  }

  async list(call: CallOptions): Promise<AlignmentsView> {
    const names = (await listAlignments(this.#client)).slice(0, groupsMax);
    const groups: AlignmentsView['groups'][number][] = [];
    // One after the other: what a plan takes in memory is free again before the next is read.
    for (const group of names) {
      const snapshot = await this.#read(group, call);
      const { limit, members, isPaused } = snapshot ?? {
        ...{ limit: null, members: [], isPaused: false },
      };
      groups.push({
        group,
        limitMs: limit?.limitMs ?? null,
        members: members.length,
        isFinished: limit?.isFinished ?? false,
        isPaused,
      });
    }
    return { groups };
  }

  async one(group: string, call: CallOptions): Promise<AlignmentView> {
    const problems: { path: string; why: string }[] = [];
    const snapshot = await this.#read(group, call, problems);
    if (snapshot === null && problems.length === 0) {
      throw new ConsoleError('NOT_FOUND', 'there is no such group');
    }
    const { rule = null, limit = null, members = [], partitions = [] } = snapshot ?? {};
    const paths = alignPaths(group);
    const leader = await this.#leader(paths.election, call);
    const cuts = await this.#cuts(group, call, problems);
    const limitMs = limit?.limitMs ?? null;
    const positions = partitions.filter(constrains).map(({ positionMs }) => positionMs);
    const slowestMs = positions.reduce<number | null>(
      (least, at) => (at !== null && (least === null || at < least) ? at : least),
      null,
    );
    const progress = this.#moved(group, limitMs, slowestMs);
    const inForce = limit?.rule ?? rule;
    return {
      group,
      rule: inForce && {
        mode: inForce.mode,
        stepMs: inForce.stepMs,
        lookAhead: inForce.mode === 'period' ? inForce.lookAhead : null,
        driftMs: inForce.mode === 'drift' ? inForce.driftMs : null,
      },
      limitMs,
      epoch: limit === null ? null : String(limit.epoch),
      movedAtMs: limit?.movedAtMs ?? null,
      isFinished: limit?.isFinished ?? false,
      holdMs: snapshot?.holdMs ?? null,
      isPaused: snapshot?.isPaused ?? false,
      members: members.map(({ id, sessionId, records, waitingShare }) => ({
        id,
        session: hex(sessionId),
        records,
        waitingShare,
        isLeader: leader !== null && sessionId === leader,
      })),
      partitions: partitions.map(partitionView),
      heldBackBy: partitions
        .filter((one) => constrains(one) && !one.isWaiting)
        .sort((a, b) => (a.positionMs ?? -Infinity) - (b.positionMs ?? -Infinity))
        .slice(0, 10)
        .map(({ key }) => key),
      progress,
      speed: speedOf(progress),
      ...(await this.#outlook(group, partitions, limit?.isFinished ?? false)),
      cuts,
      calledEnd: snapshot?.calledMs ?? null,
      problems,
    };
  }

  async #read(
    group: string,
    call: CallOptions,
    problems: { path: string; why: string }[] = [],
  ): Promise<AlignSnapshot | null> {
    call.signal?.throwIfAborted();
    try {
      return await readAlignment(this.#client, group);
    } catch (error) {
      const { problem } = error as { problem?: { path: string; why: string } };
      if (problem === undefined) throw error;
      problems.push({ path: problem.path, why: problem.why });
      return null;
    }
  }

  /** The session of the first in line. */
  async #leader(path: string, call: CallOptions): Promise<bigint | null> {
    const names = (await this.#client.children(path, call).catch(orNull)) ?? [];
    const [first] = names.sort((a, b) => (a.slice(-10) < b.slice(-10) ? -1 : 1));
    if (first === undefined) return null;
    const stat = await this.#client.exists(`${path}/${first}`, call).catch(orNull);
    return stat?.ephemeralOwner ?? null;
  }

  async #cuts(group: string, call: CallOptions, problems: { path: string; why: string }[]) {
    const paths = alignPaths(group);
    const names = (await this.#client.children(paths.cuts, call).catch(orNull)) ?? [];
    const newest = names.sort().slice(-cutsShown).reverse();
    const found = await Promise.all(
      newest.map(async (name) => {
        const path = paths.cut(name);
        const node = await this.#client.get(path, call).catch(orNull);
        if (node === null || node.data === null || node.data.length === 0) return [];
        try {
          const { end, start, offsets } = parseCut(node.data, path);
          const entries = [...offsets].map(([key, offset]) => [key, String(offset)]);
          return [{ end, start, offsets: Object.fromEntries(entries) }];
        } catch (error) {
          problems.push({ path, why: (error as Error).message });
          return [];
        }
      }),
    );
    return found.flat();
  }

  /** What is left, and how long it takes if nothing comes and everybody goes on as they did. */
  async #outlook(
    group: string,
    partitions: readonly SeenPartition[],
    isFinished: boolean,
  ): Promise<Pick<AlignmentView, 'left' | 'ratePerS' | 'etaMs'>> {
    const pace = this.#pace.get(group) ?? [];
    this.#pace.delete(group);
    this.#pace.set(group, pace);
    const [oldest] = this.#pace.keys();
    if (this.#pace.size > groupsMax && oldest !== undefined) this.#pace.delete(oldest);
    const records = partitions.reduce((sum, { offset }) => sum + Number(offset ?? 0n), 0);
    // Fewer than before: partitions went, or it began anew.
    if (records < (pace.at(-1)?.records ?? 0)) pace.length = 0;
    pace.push({ atMs: this.#clock.wallMs(), records });
    if (pace.length > paceMax) pace.shift();
    const [first, last] = [pace[0]!, pace.at(-1)!];
    const tookMs = last.atMs - first.atMs;
    const ratePerS = tookMs < 1_000 ? null : ((last.records - first.records) * 1_000) / tookMs;
    if (isFinished) return { left: null, ratePerS, etaMs: null };
    const left = await this.#left(partitions);
    const isMoving = ratePerS !== null && ratePerS > 0;
    const etaMs =
      left === null ? null : left === 0n ? 0 : isMoving ? (Number(left) * 1_000) / ratePerS : null;
    return {
      left: left === null ? null : String(left),
      ratePerS,
      etaMs: etaMs === null ? null : Math.round(etaMs),
    };
  }

  async #left(partitions: readonly SeenPartition[]): Promise<bigint | null> {
    const open = partitions.filter(({ state }) => state !== 'finished');
    if (open.length > leftPartitionsMax || this.#ends() === undefined) return null;
    const ids = open.map(({ key, offset }) => {
      const slash = key.lastIndexOf('/');
      return { topic: key.slice(0, slash), partition: key.slice(slash + 1), offset: offset ?? 0n };
    });
    const ends = await endsOf(this.#ends(), ids);
    let sum = 0n;
    for (const id of ids) {
      const { lag, isOutOfRange } = ends.of(id);
      // Records that those brokers do not have: what is replayed is somewhere else.
      if (lag === null || isOutOfRange) return null;
      sum += lag;
    }
    return sum;
  }

  #moved(group: string, limitMs: number | null, slowestMs: number | null): readonly Progress[] {
    const points = this.#progress.get(group) ?? [];
    this.#progress.delete(group);
    this.#progress.set(group, points);
    const [oldest] = this.#progress.keys();
    if (this.#progress.size > groupsMax && oldest !== undefined) this.#progress.delete(oldest);
    const last = points.at(-1);
    if (limitMs !== null && (last?.limitMs !== limitMs || last.slowestMs !== slowestMs)) {
      points.push({ atMs: this.#clock.wallMs(), limitMs, slowestMs });
      if (points.length > progressMax) points.shift();
    }
    return points;
  }
}

function constrains({ state }: SeenPartition): boolean {
  return state === 'reading' || state === 'unknown' || state === 'stopped';
}

function partitionView(seen: SeenPartition): AlignPartition {
  const { key, member, state, positionMs, offset, isWaiting } = seen;
  const shown = isWaiting ? 'paused' : state === 'unknown' || member === null ? 'unowned' : state;
  return { key, member, state: shown, positionMs, offset: offset === null ? null : String(offset) };
}

function speedOf(points: readonly Progress[]): number | null {
  const [first, last] = [points.at(-60) ?? points[0], points.at(-1)];
  if (first === undefined || last === undefined || last.atMs <= first.atMs) return null;
  return (last.limitMs - first.limitMs) / (last.atMs - first.atMs);
}
