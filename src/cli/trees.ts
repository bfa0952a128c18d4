/**
 * Looking at whole subtrees: tree, find, grep, du. What is found is printed as it is found, so that
 * memory does not grow with the tree, and Ctrl-C stops it anywhere.
 */

import { nameOf } from '../protocol/index.ts';
import { expression, glob, literal, type Pattern, PatternError } from '../support/index.ts';
import { Columns } from './columns.ts';
import type { Context, OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { escaped, foundCode, hex } from './output.ts';
import { type Visited, type VisitOptions, visitSubtree } from './subtree.ts';
import { numberIn } from './within.ts';

type Args = readonly string[];

export function countOf(options: OptionValues, key: string, flag: string): number | undefined {
  const text = options[key];
  if (text === undefined) return undefined;
  const value = numberIn(text);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new CommandError('usage', `${flag} ${escaped(String(text))}: a whole number is wanted`);
}

/** All nodes, with what every such command does about progress, refusals and a slow reader. */
async function* visited(
  context: Context,
  path: string,
  options: Omit<VisitOptions, 'signal' | 'onRefused'>,
): AsyncGenerator<Visited, void, undefined> {
  const { output, signal } = context;
  const client = await context.client();
  let count = 0;
  let refused = 0;
  const onRefused = (at: string) => {
    refused += 1;
    if (refused <= refusalsTold) output.tell(`${escaped(at)} may not be read`);
  };
  for await (const node of visitSubtree(client, path, { ...options, signal, onRefused })) {
    count += 1;
    context.budget?.spend(Buffer.byteLength(node.path) + (node.data?.length ?? 0));
    output.status(() => `${count} nodes, at ${escaped(node.path)}`);
    yield node;
    await output.paced();
  }
  if (refused > refusalsTold) output.tell(`${refused} nodes may not be read`);
}

const refusalsTold = 10;

// ── tree ──────────────────────────────────────────────────────────────────────────────────────────

export async function tree(
  context: Context,
  [given]: Args,
  options: OptionValues,
): Promise<number> {
  const { output } = context;
  const depthMax = countOf(options, 'depth', '--depth');
  const root = context.path(given);
  let bars: string[] = [];
  let count = 0;
  for await (const node of visited(context, root, {
    ...(depthMax !== undefined && { depthMax }),
  })) {
    const { path, depth, stat, isLast } = node;
    count += 1;
    const isCut = depth === depthMax && stat.numChildren > 0;
    if (output.isJson) {
      output.record({
        ...{ path, depth, children: stat.numChildren, bytes: stat.dataLength, isCut },
        ephemeralOwner: stat.ephemeralOwner === 0n ? null : stat.ephemeralOwner,
        ...(options.stat && { version: stat.version, mzxid: stat.mzxid }),
      });
      continue;
    }
    bars = bars.slice(0, Math.max(0, depth - 1));
    const branch = depth === 0 ? '' : isLast ? '└── ' : '├── ';
    const name = depth === 0 ? escaped(path) : escaped(nameOf(path));
    output.line(`${bars.join('')}${branch}${name}${marks(node, options, isCut, output)}`);
    if (depth > 0) bars.push(isLast ? '    ' : '│   ');
  }
  if (!output.isJson) output.tell(`${count} nodes`);
  return exitCodes.ok;
}

function marks(
  { stat }: Visited,
  options: OptionValues,
  isCut: boolean,
  output: Context['output'],
): string {
  const said: string[] = [];
  if (options.size) said.push(`${stat.dataLength} B`);
  if (options.stat) said.push(`version ${stat.version}`, `mzxid ${hex(stat.mzxid)}`);
  if (stat.ephemeralOwner !== 0n) said.push(`ephemeral ${hex(stat.ephemeralOwner)}`);
  if (isCut) said.push(`${stat.numChildren} below`);
  return said.length === 0 ? '' : output.paint('dim', `  (${said.join(', ')})`);
}

// ── find ──────────────────────────────────────────────────────────────────────────────────────────

export async function find(context: Context, args: Args, options: OptionValues): Promise<number> {
  const { output } = context;
  const [given, pattern] = args;
  const root = context.path(given);
  const matches = filterOf(context, pattern, options);
  const depthMax = countOf(options, 'depth', '--depth');
  let found = 0;
  for await (const node of visited(context, root, {
    ...(depthMax !== undefined && { depthMax }),
  })) {
    if (!matches(node)) continue;
    found += 1;
    if (options.count === true) continue;
    const { path, stat } = node;
    if (!output.isJson) output.line(escaped(path));
    else {
      output.record({
        ...{ path, bytes: stat.dataLength, children: stat.numChildren, version: stat.version },
        ...{ ephemeralOwner: stat.ephemeralOwner, mtime: new Date(Number(stat.mtime)) },
      });
    }
  }
  if (options.count === true) {
    if (output.isJson) output.record({ found });
    else output.line(String(found));
  }
  return exitCodes.ok;
}

function filterOf(
  context: Context,
  pattern: string | undefined,
  options: OptionValues,
): (node: Visited) => boolean {
  const tests: ((node: Visited) => boolean)[] = [];
  if (pattern !== undefined) tests.push(nameTest(context, pattern, options));
  if (options.ephemeral) tests.push(({ stat }) => stat.ephemeralOwner > 0n);
  if (options.leaf) tests.push(({ stat }) => stat.numChildren === 0);
  const owner = options.owner as string | undefined;
  if (owner !== undefined) {
    const id = sessionIdOf(owner);
    tests.push(({ stat }) => BigInt.asUintN(64, stat.ephemeralOwner) === id);
  }
  const least = countOf(options, 'minBytes', '--min-bytes');
  if (least !== undefined) tests.push(({ stat }) => stat.dataLength >= least);
  const most = countOf(options, 'maxBytes', '--max-bytes');
  if (most !== undefined) tests.push(({ stat }) => stat.dataLength <= most);
  const children = countOf(options, 'minChildren', '--min-children');
  if (children !== undefined) tests.push(({ stat }) => stat.numChildren >= children);
  const nowMs = Date.now();
  const newerMs = durationOf(options, 'newer', '--newer');
  if (newerMs !== undefined) tests.push(({ stat }) => Number(stat.mtime) >= nowMs - newerMs);
  const olderMs = durationOf(options, 'older', '--older');
  if (olderMs !== undefined) tests.push(({ stat }) => Number(stat.mtime) < nowMs - olderMs);
  return (node) => tests.every((test) => test(node));
}

/** Text anywhere in the path; with * or ? the whole name; with -E a regular expression over the path. */
function nameTest(
  context: Context,
  pattern: string,
  options: OptionValues,
): (node: Visited) => boolean {
  if (options.E === true) {
    const matches = matcher(context, pattern, options, {
      make: expression,
      cure: 'without -E it is plain text',
    });
    return ({ path }) => matches(path);
  }
  if (/[*?]/.test(pattern)) {
    const matches = matcher(context, pattern, options, { make: glob, cure: 'make it shorter' });
    return ({ path }) => matches(nameOf(path));
  }
  const matches = textTest(context, pattern, options);
  return ({ path }) => matches(path);
}

function textTest(
  context: Context,
  text: string,
  options: OptionValues,
): (text: string) => boolean {
  if (options.i !== true) return (all) => all.includes(text);
  return matcher(context, text, options, { make: literal, cure: 'make it shorter' });
}

/** Patterns run in linear time: in the console one that does not would stop the server for everybody. */
function matcher(
  { budget }: Context,
  pattern: string,
  options: OptionValues,
  { make, cure }: { readonly make: typeof glob; readonly cure: string },
): (text: string) => boolean {
  const stepsMax = budget?.limits.patternStepsMax ?? Number.POSITIVE_INFINITY;
  const refuse = (cause: unknown): never => {
    if (!(cause instanceof PatternError)) throw cause;
    const what = `cannot use the pattern ${escaped(cut(pattern))}: ${escaped(cause.message)}`;
    throw new CommandError('usage', `${what}; ${cure}`, { cause });
  };
  let made: Pattern;
  try {
    made = make(pattern, { ignoreCase: options.i === true, stepsMax });
  } catch (error) {
    return refuse(error);
  }
  return (text) => {
    try {
      return made.test(text);
    } catch (error) {
      return refuse(error);
    }
  };
}

export function sessionIdOf(text: string): bigint {
  if (/^(0x)?[0-9a-f]{1,16}$/i.test(text)) return BigInt(`0x${text.replace(/^0x/i, '')}`);
  throw new CommandError(
    'usage',
    `${escaped(text)}: a session is a hex number, as 0x1000a2b3c4d0001`,
  );
}

// biome-ignore format: a table is read down its columns
const unitsMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

export function durationOf(options: OptionValues, key: string, flag: string): number | undefined {
  const text = options[key];
  if (text === undefined) return undefined;
  const [, number, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w)$/.exec(String(text)) ?? [];
  if (unit !== undefined) return Number(number) * unitsMs[unit as keyof typeof unitsMs];
  throw new CommandError(
    'usage',
    `${flag} ${escaped(String(text))}: a time such as 30s, 15m, 2h or 7d`,
  );
}

// ── grep ──────────────────────────────────────────────────────────────────────────────────────────

export async function grep(context: Context, args: Args, options: OptionValues): Promise<number> {
  const { output } = context;
  const [pattern = '', given] = args;
  const matches =
    options.F === true
      ? textTest(context, pattern, options)
      : matcher(context, pattern, options, { make: expression, cure: 'grep -F takes it as text' });
  const depthMax = countOf(options, 'depth', '--depth');
  let found = 0;
  const visiting = { withData: true, ...(depthMax !== undefined && { depthMax }) };
  for await (const { path, data } of visited(context, context.path(given), visiting)) {
    if (data === null) continue;
    const lines = data.toString('utf8').split('\n');
    for (const [i, line] of lines.entries()) {
      if (!matches(line)) continue;
      found += 1;
      if (options.l === true) {
        if (output.isJson) output.record({ path });
        else output.line(escaped(path));
        break;
      }
      if (output.isJson) output.record({ path, line: i + 1, text: line });
      else output.line(`${output.paint('cyan', escaped(path))}:${i + 1}: ${cut(escaped(line))}`);
    }
  }
  return found > 0 ? exitCodes.ok : foundCode; // as grep(1) has it
}

const lineCharsMax = 500;

function cut(text: string): string {
  return text.length > lineCharsMax ? `${text.slice(0, lineCharsMax)}…` : text;
}

// ── du ────────────────────────────────────────────────────────────────────────────────────────────

interface Size {
  readonly path: string;
  bytes: number;
  nodes: number;
}

/** What stands below each child, largest first. Only the largest are kept while counting. */
export async function du(context: Context, [given]: Args, options: OptionValues): Promise<number> {
  const { output } = context;
  const root = context.path(given);
  const top = countOf(options, 'top', '--top') ?? 20;
  const total: Size = { path: root, bytes: 0, nodes: 0 };
  let largest: Size[] = [];
  let current: Size | undefined;
  const trimmed = () =>
    largest.sort((a, b) => b.bytes - a.bytes || b.nodes - a.nodes).slice(0, top);
  for await (const { path, depth, stat } of visited(context, root, {})) {
    total.bytes += stat.dataLength;
    total.nodes += 1;
    if (depth === 1) {
      current = { path, bytes: 0, nodes: 0 };
      largest.push(current);
      if (largest.length > 2 * top + 1_000) {
        largest = trimmed();
        if (!largest.includes(current)) largest.push(current);
      }
    }
    if (depth === 0 || current === undefined) continue;
    current.bytes += stat.dataLength;
    current.nodes += 1;
  }
  const rows = [...trimmed(), total];
  if (output.isJson) {
    for (const { path, bytes, nodes } of rows) {
      output.record({ path, bytes, nodes, isTotal: path === root });
    }
    return exitCodes.ok;
  }
  const columns = new Columns(output, 'BYTES', 'NODES', 'PATH');
  for (const { path, bytes, nodes } of rows) {
    columns.row(String(bytes), String(nodes), escaped(path) + (path === root ? '  (all)' : ''));
  }
  columns.end();
  return exitCodes.ok;
}
