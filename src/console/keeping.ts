/**
 * What is kept of nodes before they are changed, so that the change can be shown and taken back.
 *
 * In: a session and paths. Out: nodes as they were, or null where there are too many, or some that are not
 * ours to read and so not ours to put back. Ephemeral nodes are left out: nobody can make another's.
 * Taking back is one multi: all of it or nothing, and nothing once somebody else has changed any of it.
 */

import type { Acl, CallOptions, Client, MultiOp } from '../client/index.ts';
import { paced } from '../support/index.ts';
import { limits } from './api.ts';
import { ConsoleError } from './console-error.ts';
import { aclView, statView } from './node-text.ts';
import { orNull } from './tree.ts';
import type { AuditState } from './views.ts';

/** Nodes of one change that are kept. */
const nodesMax = 1_000;
/** Of one multi: a server takes a megabyte in one request by default, and paths need room too. */
const multiBytesMax = 768 * 1024;
const keptBytesMax = Math.min(limits.undoBytesMax, multiBytesMax);
/** What is shown of the data of one node, of several, and of all of them together. */
const shownBytes = 16 * 1024;
const lineCharsMax = 200;

export interface Kept {
  readonly path: string;
  readonly data: Buffer | null;
  readonly acl: readonly Acl[];
  readonly aclVersion: number;
  readonly mode: 'persistent' | 'container';
}

/** Each path with all below it, parents before children. Null: it can't all be kept. */
export async function keepNodes(
  client: Client,
  paths: readonly string[],
  count: number,
  call: CallOptions,
): Promise<Kept[] | null> {
  if (count > nodesMax) return null;
  const kept: Kept[] = [];
  let bytes = 0;
  for (const path of paths) {
    for await (const { path: at, stat } of paced(client.walk(path, call))) {
      if (stat.ephemeralOwner > 0n) continue;
      bytes += stat.dataLength + at.length;
      if (bytes > keptBytesMax || kept.length >= nodesMax) return null;
      const [node, acl] = await Promise.all([
        client.get(at, call).catch(orNull),
        client.getAcl(at, call).catch(orNull),
      ]);
      if (node === null || acl === null) return null;
      const mode = statView(stat).kind === 'container' ? 'container' : 'persistent';
      kept.push({
        path: at,
        data: node.data,
        acl: acl.acl,
        aclVersion: acl.stat.aversion,
        mode,
      });
    }
  }
  return kept;
}

export function bytesIn(kept: readonly { readonly path: string; readonly data: Buffer | null }[]) {
  return kept.reduce((sum, { path, data }) => sum + path.length + (data?.length ?? 0), 0);
}

/** Makes deleted nodes again, all or none. */
export async function putBack(client: Client, kept: readonly Kept[]): Promise<void> {
  await client.multi(
    kept.map(({ path, data, acl, mode }) => ({ op: 'create' as const, path, data, acl, mode })),
  );
}

export interface Written {
  readonly path: string;
  /** Null: the change made the node. */
  readonly before: { readonly data: Buffer | null } | null;
  readonly data: Buffer | null;
  /** As the change left it. */
  readonly version: number;
}

/** Null: too much for one multi, which is the only way that leaves nothing halfway. */
export function takeBack(
  client: Client,
  written: readonly Written[],
): (() => Promise<void>) | null {
  const old = written.map(({ path, before }) => ({ path, data: before?.data ?? null }));
  if (written.length > nodesMax || bytesIn(old) > multiBytesMax) return null;
  // The last that was made goes first: children before their parents.
  const steps = written
    .toReversed()
    .map(
      ({ path, before, version }): MultiOp =>
        before === null
          ? { op: 'delete', path, version }
          : { op: 'set', path, data: before.data, version },
    );
  return async () => {
    await client.multi(steps);
  };
}

/** ACLs stand in no multi: all are looked at first, and set when nobody has touched any of them. */
export async function putAclsBack(
  client: Client,
  kept: readonly { readonly path: string; readonly acl: readonly Acl[]; readonly left: number }[],
): Promise<void> {
  for (const { path, left } of kept) {
    const { stat } = await client.getAcl(path);
    if (stat.aversion !== left) {
      throw new ConsoleError('CONFLICT', `${path}: somebody changed its ACL since`);
    }
  }
  for (const { path, acl, left } of kept) await client.setAcl(path, acl, { version: left });
}

/** One node, as the audit shows it. */
export function stateOf(data: Buffer | null, version: number | null): AuditState {
  const shown = data === null ? null : data.subarray(0, shownBytes).toString('base64');
  return { data: shown, version };
}

/** Several: a line for each, so that before and after can be laid side by side. */
export function listing(
  nodes: readonly { readonly path: string; readonly data: Buffer | null }[],
): AuditState | null {
  if (nodes.length === 0) return null;
  const lines = nodes.map(({ path, data }) => `${path}  ${lineOf(data)}`);
  return { data: textOf(lines), version: null };
}

export function aclListing(
  nodes: readonly { readonly path: string; readonly acl: readonly Acl[] }[],
): AuditState {
  const lines = nodes.map(({ path, acl }) => {
    const entries = aclView(acl).map(({ scheme, id, perms }) => `${scheme}:${id}:${perms}`);
    return `${path}  ${entries.join(' ')}`;
  });
  return { data: textOf(lines), version: null };
}

function lineOf(data: Buffer | null): string {
  if (data === null) return 'null';
  const text = data.subarray(0, lineCharsMax * 4).toString('utf8');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\x00-\x08\x0e-\x1f\ufffd]/.test(text)) return `${data.length} bytes`;
  const line = JSON.stringify(text);
  return line.length > lineCharsMax ? `${line.slice(0, lineCharsMax)}…` : line;
}

function textOf(lines: readonly string[]): string {
  return Buffer.from(lines.join('\n')).subarray(0, shownBytes).toString('base64');
}
