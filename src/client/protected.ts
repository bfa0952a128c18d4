/**
 * Creates and deletes that survive a lost reply.
 *
 * When the link breaks after a create has left, only the server knows whether the node is there. A
 * name with a mark of its own answers that: after the reconnect the parent's children are searched
 * for it. An ephemeral node found that way counts only if it belongs to the session we have now; one
 * of an earlier session is about to go, and is taken away at once (CURATOR-498, -604).
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
import type { Client, CreateOptions, VersionOptions } from './client.ts';
import type { CallOptions } from './core.ts';
import { type Created, createPart } from './multi-ops.ts';

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
  { retries = 10, ...options }: ProtectedOptions,
): Promise<Created> {
  createPart(path, options, (it) => it); // what cannot be sent is refused as the caller wrote it
  const mark = `_c_${randomUUID()}-`;
  const parent = parentOf(path) ?? '/';
  const marked = childOf(parent, mark + nameOf(path));
  const isEphemeral = createModes[options.mode ?? 'persistent']?.ephemeral === true;
  try {
    for (let tries = 0; ; tries++) {
      try {
        return await client.create(marked, options);
      } catch (error) {
        if (!isZkError(error) || !error.outcomeUnknown || tries >= retries) throw error;
      }
      const found = await search(client, parent, mark, options, retries, isEphemeral);
      if (found === null) continue;
      if (!isEphemeral || found.stat.ephemeralOwner === client.sessionId) return found;
      await client.discard(found.path);
    }
  } catch (error) {
    if (options.signal?.aborted) {
      // It may be there all the same, and nobody would ever know: look, and take it away.
      void search(client, parent, mark, {}, retries, isEphemeral)
        .then((found) => found && client.discard(found.path))
        .catch(() => {}); // the session is over, and with it an ephemeral node
    }
    throw error;
  }
}

/** Looks until it knows. Where it can't come to know, the outcome stays unknown, and the error says so. */
async function search(
  client: Client,
  parent: string,
  mark: string,
  options: CallOptions,
  retries: number,
  isEphemeral: boolean,
): Promise<Created | null> {
  for (let tries = 0; ; tries++) {
    try {
      return await find(client, parent, mark, options);
    } catch (error) {
      if (!isZkError(error) || options.signal?.aborted) throw error;
      const { name } = client.state;
      const goesOn = name === 'connecting' || name === 'connected' || name === 'suspended';
      const isWorthIt = error.code === 'CONNECTION_LOSS' || error.code === 'SESSION_EXPIRED';
      if (goesOn && isWorthIt && tries < retries) continue;
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

/** How often a delete is asked for again when its reply was lost. */
const discardTries = 10;

export async function discard(
  client: Client,
  path: string,
  options: VersionOptions,
): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await client.delete(path, options);
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return;
      if (!isZkError(error) || !error.outcomeUnknown || tries === discardTries) throw error;
    }
  }
}
