/**
 * Creates and deletes that survive a lost reply.
 *
 * When the link breaks after a create has left, only the server knows whether the node is there. A
 * name with a mark of its own answers that: after the reconnect the parent's children are searched
 * for it. An ephemeral node found that way counts only if it belongs to the session we have now; one
 * of an earlier session is about to go, and is taken away at once (CURATOR-498, -604).
 *
 * Whoever is told of a failure has no such node, or soon has none: what may be there all the same is
 * looked for, however long that takes, and taken away.
 */

import { randomUUID } from 'node:crypto';
import {
  childOf,
  createModes,
  isZkError,
  nameOf,
  parentOf,
  type StatView,
  ZkError,
} from '../protocol/index.ts';
import { Backoff, type Clock, pause, unbounded } from '../support/index.ts';
import type { DataInput } from './arguments.ts';
import type { Client, CreateOptions, VersionOptions } from './client.ts';
import type { CallOptions } from './core.ts';
import { type Created, createPart } from './multi-ops.ts';
import { refusals } from './refusals.ts';

export interface ProtectedOptions extends CreateOptions {
  /** How often it is tried again after a lost reply. 10. */
  readonly retries?: number;
}

const markPattern = /^_c_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}-/;

/** The name without the mark, if it has one. */
export function unmarked(name: string): string {
  return name.replace(markPattern, '');
}

export async function createProtected(
  client: Client,
  path: string,
  data: DataInput | undefined,
  { retries = 10, ...options }: ProtectedOptions,
  clock: Clock,
): Promise<Created> {
  createPart(path, data, options, (it) => it); // what cannot be sent is refused as the caller wrote it
  const { signal, timeoutMs } = options;
  const call = { ...(signal && { signal }), ...(timeoutMs !== undefined && { timeoutMs }) };
  const mark = `_c_${randomUUID()}-`;
  const parent = parentOf(path) ?? '/';
  const marked = childOf(parent, mark + nameOf(path));
  const isEphemeral = createModes[options.mode ?? 'persistent']?.ephemeral === true;
  const wanted = { client, clock, parent, mark, retries, isEphemeral };
  try {
    for (let tries = 0; ; tries++) {
      try {
        return await client.create(marked, data, options);
      } catch (error) {
        if (!isZkError(error) || !error.outcomeUnknown || tries >= retries) throw error;
      }
      const found = await search(wanted, call);
      if (found === null) continue;
      if (!isEphemeral || found.stat.ephemeralOwner === client.sessionId) return found;
      await client.discard(found.path);
    }
  } catch (error) {
    if (options.signal?.aborted || (isZkError(error) && error.outcomeUnknown)) {
      // It may be there all the same, and nobody would ever know: look, and take it away.
      void search(wanted, unbounded)
        .then((found) => found && client.discard(found.path))
        .catch(() => {}); // the session is over, and with it an ephemeral node
    }
    throw error;
  }
}

interface Wanted {
  readonly client: Client;
  readonly clock: Clock;
  readonly parent: string;
  readonly mark: string;
  readonly retries: number;
  readonly isEphemeral: boolean;
}

/** Looks until it knows. Where it can't come to know, the outcome stays unknown, and the error says so. */
async function search(
  { client, clock, parent, mark, retries, isEphemeral }: Wanted,
  options: CallOptions,
): Promise<Created | null> {
  const backoff = new Backoff(refusedBackoff);
  for (let tries = 0; ; tries++) {
    try {
      return await find(client, parent, mark, options);
    } catch (error) {
      if (!isZkError(error) || options.signal?.aborted) throw error;
      const { name } = client.state;
      const goesOn = name === 'connecting' || name === 'connected' || name === 'suspended';
      const isRefused = isZkError(error, ...refusals);
      const isWorthIt = isRefused || isZkError(error, 'CONNECTION_LOSS', 'SESSION_EXPIRED');
      if (goesOn && isWorthIt && tries < retries) {
        if (isRefused) await rest(client, clock, backoff, options.signal);
        continue;
      }
      // An ephemeral node goes with its session, whether it was made or not.
      const outcomeUnknown = goesOn || !isEphemeral;
      throw new ZkError(error.code, { op: 'create', path: parent, outcomeUnknown, cause: error });
    }
  }
}

async function find(
  client: Client,
  parent: string,
  mark: string,
  { signal, timeoutMs }: CallOptions,
): Promise<Created | null> {
  const options = { ...(signal && { signal }), ...(timeoutMs && { timeoutMs }) };
  try {
    await client.barrier(options); // another server may be behind the one that had the create
    const names = await client.children(parent, options);
    const name = names.find((one) => one.startsWith(mark));
    if (name === undefined) return null;
    const path = childOf(parent, name);
    const stat: StatView | null = await client.exists(path, options);
    return stat && { path, stat };
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return null;
    throw error;
  }
}

/** How often a delete is asked for again when its reply was lost, or when it was refused for the moment. */
const discardTries = 10;
/** Between tries of what a server refused since it has too much to do. */
const refusedBackoff = { firstMs: 20, maxMs: 2_000 };

/** A deadline that calls have is none of this one, unless it is its own: without a link it waits for one. */
export async function discard(
  client: Client,
  path: string,
  options: VersionOptions,
  clock: Clock,
): Promise<void> {
  const backoff = new Backoff(refusedBackoff);
  for (let tries = 1; ; tries++) {
    try {
      return await client.delete(path, { ...unbounded, ...options });
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return;
      const isRefused = isZkError(error, ...refusals);
      const isWorthIt = isRefused || (isZkError(error) && error.outcomeUnknown);
      if (!isWorthIt || tries === discardTries) throw error;
      if (isRefused) await rest(client, clock, backoff, options.signal);
    }
  }
}

/** For a moment, or until the session or the caller has had enough, of which the next call tells. */
function rest(
  client: Client,
  clock: Clock,
  backoff: Backoff,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { sessionSignal } = client;
  return pause(clock, backoff.next(), ...(signal ? [sessionSignal, signal] : [sessionSignal]));
}
