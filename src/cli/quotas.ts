/**
 * Quotas: setquota, listquota, delquota, as zkCli does them.
 *
 *   /zookeeper/quota/<path>/zookeeper_limits   count=5,bytes=-1=;byteHardLimit=-1;countHardLimit=-1
 *   /zookeeper/quota/<path>/zookeeper_stats    count=2,bytes=10
 *
 * They stand outside any chroot, so that a session without one is used: zkCli, given a chroot, writes
 * quotas below it, where no server looks.
 */

import { type Client, isZkError, parseServers } from '../client/index.ts';
import { childOf, isWithin, parentOf } from '../protocol/index.ts';
import type { Context, OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { escaped } from './output.ts';
import { listSubtree } from './subtree.ts';

const quotaRoot = '/zookeeper/quota';
const limitName = 'zookeeper_limits';
const statName = 'zookeeper_stats';

type Values = Record<string, bigint>;

/** StatsTrack: pairs between commas or semicolons; an odd `=` behind bytes keeps old readers away. */
export function parseTrack(text: string): Values {
  const values: Values = {};
  for (const pair of text.split(/[,;]+/)) {
    const [key = '', value = ''] = pair.split('=');
    if (key !== '') values[key] = /^-?\d+$/.test(value) ? BigInt(value) : -1n;
  }
  return values;
}

export function trackText(values: Values): string {
  const { count = -1n, bytes = -1n, ...rest } = values;
  const others = Object.keys(rest).sort();
  const tail = others.map((key) => `;${key}=${rest[key]}`).join('');
  return `count=${count},bytes=${bytes}${others.length > 0 ? '=' : ''}${tail}`;
}

/** zkCli's letters and what they stand for. */
// biome-ignore format: a table is read down its columns
const limits = {
  n: { key: 'count',          what: 'num',   least: 1n },
  b: { key: 'bytes',          what: 'bytes', least: 0n },
  N: { key: 'countHardLimit', what: 'num',   least: 1n },
  B: { key: 'byteHardLimit',  what: 'bytes', least: 0n },
} as const;

type Letter = keyof typeof limits;
const letters = Object.keys(limits) as Letter[];

/** The session without its chroot, and the path with it. */
async function rooted<T>(
  context: Context,
  given: string | undefined,
  work: (client: Client, path: string) => Promise<T>,
): Promise<T> {
  const path = context.path(given);
  const { servers } = await context.target();
  const { chroot } = parseServers(servers);
  if (chroot === '' || chroot === '/') return work(await context.client(), path);
  const slash = servers.indexOf('/');
  const client = await context.connect(servers.slice(0, slash));
  try {
    return await work(client, path === '/' ? chroot : chroot + path);
  } finally {
    await client.close();
  }
}

const quotaPathOf = (path: string) => (path === '/' ? quotaRoot : quotaRoot + path);

async function trackAt(client: Client, path: string, signal: AbortSignal): Promise<Values | null> {
  try {
    const { data } = await client.get(path, { signal });
    return parseTrack(data?.toString('utf8') ?? '');
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return null;
    throw error;
  }
}

export async function listQuota(context: Context, [given]: readonly string[]): Promise<number> {
  const { output, signal } = context;
  return rooted(context, given, async (client, path) => {
    const shown = escaped(context.path(given));
    const limitPath = childOf(quotaPathOf(path), limitName);
    const quota = await trackAt(client, limitPath, signal);
    const used = await trackAt(client, childOf(quotaPathOf(path), statName), signal);
    if (output.isJson) {
      output.record({ path: context.path(given), quota: numbers(quota), used: numbers(used) });
      return exitCodes.ok;
    }
    output.tell(`absolute path is ${escaped(limitPath)}`);
    if (quota === null || used === null) {
      output.tell(`quota for ${shown} does not exist.`);
      return exitCodes.ok;
    }
    output.line(`Output quota for ${shown} ${trackText(quota)}`);
    output.line(`Output stat for ${shown} ${trackText(used)}`);
    return exitCodes.ok;
  });
}

function numbers(values: Values | null): Record<string, number> | null {
  if (values === null) return null;
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, Number(value)]));
}

export async function setQuota(
  context: Context,
  [given]: readonly string[],
  options: OptionValues,
): Promise<number> {
  const wanted = wantedOf(options);
  const { output, signal } = context;
  return rooted(context, given, async (client, path) => {
    if (isWithin(path, quotaRoot)) {
      throw new CommandError('refused', `cannot set a quota under the path: ${quotaRoot}`);
    }
    // Apache's server stops at such limits, for good: to it they are no path's.
    if (/^[ /]*$/.test(path)) {
      throw new CommandError('refused', `${escaped(path)} can have no quota: a name is wanted`);
    }
    if ((await client.exists(path, { signal })) === null) {
      throw new CommandError('refused', `${escaped(context.path(given))} does not exist.`);
    }
    await refuseNested(client, path, signal);
    const limitPath = childOf(quotaPathOf(path), limitName);
    const statPath = childOf(quotaPathOf(path), statName);
    const none = { count: -1n, bytes: -1n, countHardLimit: -1n, byteHardLimit: -1n };
    const before = await trackAt(client, limitPath, signal);
    const quota = { ...(before ?? none), ...wanted };
    if (before === null) {
      await client.create(limitPath, trackText(quota), { parents: true, signal });
      await client.create(statPath, trackText({ count: 0n, bytes: 0n }), { signal });
    } else {
      await client.set(limitPath, trackText(quota), { signal });
    }
    const used = (await trackAt(client, statPath, signal)) ?? {};
    for (const warning of warnings(quota, used)) output.tell(warning);
    if (output.isJson) output.record({ path: context.path(given), quota: numbers(quota) });
    return exitCodes.ok;
  });
}

/** Exactly one of the four, as zkCli's option group has it. */
function wantedOf(options: OptionValues): Values {
  const given = letters.filter((letter) => options[letter] !== undefined);
  if (given.length !== 1) {
    throw new CommandError(
      'usage',
      'one of -n, -b, -N and -B is wanted; it is setquota -n|-b|-N|-B val path',
    );
  }
  const letter = given[0]!;
  const { key, what, least } = limits[letter];
  const text = String(options[letter]);
  if (!/^-?\d{1,18}$/.test(text)) {
    throw new CommandError('usage', `-${letter} ${escaped(text)}: a whole number is wanted`);
  }
  const value = BigInt(text);
  if (value < least) {
    const bound = least === 1n ? 'greater than zero' : 'greater than or equal to zero';
    throw new CommandError('usage', `the ${what} quota must be ${bound}`);
  }
  return { [key]: value };
}

/** A quota has neither another above it nor one below. */
async function refuseNested(client: Client, path: string, signal: AbortSignal): Promise<void> {
  for (let above = parentOf(path); above !== null && above !== '/'; above = parentOf(above)) {
    const limit = await client.exists(childOf(quotaPathOf(above), limitName), { signal });
    if (limit === null) continue;
    const which = escaped(above);
    throw new CommandError('refused', `${escaped(path)} has a parent ${which} which has a quota`);
  }
  const own = childOf(quotaPathOf(path), limitName);
  try {
    for await (const each of listSubtree(client, quotaPathOf(path), { signal })) {
      if (each === own || !each.endsWith(`/${limitName}`)) continue;
      const which = escaped(parentOf(each)!.slice(quotaRoot.length));
      throw new CommandError('refused', `${escaped(path)} has a child ${which} which has a quota`);
    }
  } catch (error) {
    if (!isZkError(error, 'NO_NODE')) throw error;
  }
}

function warnings(quota: Values, used: Values): string[] {
  const isBelow = (key: string, now: bigint) => {
    const limit = quota[key] ?? -1n;
    return limit > -1n && limit < now;
  };
  const { count = 0n, bytes = 0n } = used;
  const all: string[] = [];
  if (isBelow('count', count) || isBelow('countHardLimit', count)) {
    all.push(`[Warning]: the count quota you create is less than the existing count:${count}`);
  }
  if (isBelow('bytes', bytes) || isBelow('byteHardLimit', bytes)) {
    all.push(`[Warning]: the bytes quota you create is less than the existing bytes:${bytes}`);
  }
  return all;
}

export async function deleteQuota(
  context: Context,
  [given]: readonly string[],
  options: OptionValues,
): Promise<number> {
  const { output, signal } = context;
  const chosen = letters.filter((letter) => options[letter] === true);
  return rooted(context, given, async (client, path) => {
    const limitPath = childOf(quotaPathOf(path), limitName);
    const quota = await trackAt(client, limitPath, signal);
    const shown = context.path(given);
    if (quota === null) {
      if (output.isJson) output.record({ path: shown, quota: null });
      else output.line(`Quota does not exist for ${escaped(shown)}`);
      return exitCodes.ok;
    }
    if (chosen.length > 0) {
      for (const letter of chosen) quota[limits[letter].key] = -1n;
      await client.set(limitPath, trackText(quota), { signal });
    } else {
      await removeQuota(client, quotaPathOf(path), signal);
    }
    if (output.isJson) {
      output.record({ path: shown, quota: chosen.length > 0 ? numbers(quota) : null });
    }
    return exitCodes.ok;
  });
}

/** The two nodes, and above them whatever stands empty now. */
async function removeQuota(client: Client, from: string, signal: AbortSignal): Promise<void> {
  for (const name of [limitName, statName]) await client.discard(childOf(from, name), { signal });
  for (let at = from; at !== quotaRoot; at = parentOf(at)!) {
    try {
      await client.delete(at, { signal });
    } catch (error) {
      if (isZkError(error, 'NOT_EMPTY')) return;
      if (!isZkError(error, 'NO_NODE')) throw error;
    }
  }
}
