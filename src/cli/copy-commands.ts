/** `drover cp` and `drover mirror`: what a person asks for, and what they are told. */

import { existsSync } from 'node:fs';
import { quotaRoot } from '../tree/index.ts';
import type { Context, OptionValues } from './command.ts';
import {
  Copy,
  type CopySource,
  type Counts,
  conflictChoices,
  noCounts,
  type OnConflict,
  type Step,
} from './copy.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { dataText, escaped } from './output.ts';
import {
  type FilePlace,
  isFilePlace,
  openExport,
  openPlace,
  openSource,
  placeOf,
  refuseReadOnly,
  type ServerPlace,
} from './places.ts';
import { requestBytesMaxOf } from './target.ts';
import { joined, type TreeNode } from './tree-node.ts';
import { refuseMasked, ZkTarget } from './tree-zk.ts';
import { Unreadable } from './unreadable.ts';

export function cp(
  context: Context,
  args: readonly string[],
  options: OptionValues,
): Promise<number> {
  return copyCommand(context, 'cp', args, options);
}

export function mirror(
  context: Context,
  args: readonly string[],
  options: OptionValues,
): Promise<number> {
  return copyCommand(context, 'mirror', args, options);
}

async function copyCommand(
  context: Context,
  name: 'cp' | 'mirror',
  [from = '', to = '']: readonly string[],
  options: OptionValues,
): Promise<number> {
  const onConflict = onConflictOf(options, name === 'mirror' ? 'overwrite' : 'fail');
  const withoutAcl = options.acl === false;
  const place = placeOf(context, to);
  const unreadable = new Unreadable(context, options);
  const source = await openSource(context, placeOf(context, from), {
    withoutAcl,
    onUnreadable: unreadable.met,
  });
  try {
    if (isFilePlace(place)) {
      const replaces = name === 'mirror' || onConflict === 'overwrite';
      const code = await exportTree(context, source, place, { replaces, withoutAcl, options });
      return code === exitCodes.ok ? unreadable.exitCode : code;
    }
    const asked = { mirrors: name === 'mirror', onConflict, withoutAcl, options };
    const code = await toServer(context, source, place, asked);
    return code === exitCodes.ok ? unreadable.exitCode : code;
  } finally {
    await source.close();
  }
}

export interface Asked {
  readonly mirrors: boolean;
  readonly onConflict: OnConflict;
  readonly withoutAcl: boolean;
  readonly options: OptionValues;
}

/** Looks, says what it would do, asks where something would be lost, and does it. */
export async function toServer(
  context: Context,
  source: CopySource,
  place: ServerPlace,
  { mirrors, onConflict, withoutAcl, options }: Asked,
): Promise<number> {
  const { output, signal } = context;
  const isDry = options.dryRun === true;
  const opened = await openPlace(context, place);
  try {
    if (!isDry) refuseReadOnly(opened, place.name);
    const target = new ZkTarget(opened.client, opened.path, signal);
    const shared = {
      signal,
      onConflict,
      withoutAcl,
      mirrors,
      requestBytesMax: requestBytesMaxOf(opened.target),
    };
    const say = (step: Step, path: string, node: TreeNode | null) => {
      if (isDry) sayStep(context, step, joined(opened.path, path), node);
    };
    const isWholeServer = opened.client.chroot === '' && opened.path === '/';
    const { fitting, left } = isWholeServer ? { fitting: source, left: none } : unquoted(source);
    const looking = new Copy(fitting, target, {
      ...shared,
      onStep: say,
      onProgress: (counts) => output.status(() => `looking: ${summary(counts)}`),
    });
    const planned = await looking.look();
    if (isDry)
      return sayCounts(
        context,
        planned,
        `would ${phrase(planned)} at ${place.name}; nothing was written`,
        left.quotas,
      );
    const lost = planned.change + planned.acl + planned.delete;
    if (
      lost > 0 &&
      !(await context.confirm(`${phrase(planned)} at ${escaped(place.name)}?`, options))
    ) {
      return exitCodes.declined;
    }
    const doing = new Copy(fitting, target, {
      ...shared,
      // Every conflict was looked at already; one that comes up now is somebody else's work.
      onProgress: (counts) =>
        output.status(() => `copying: ${summary(counts)} of ${total(planned)}`),
    });
    const done = await doing.perform();
    return sayCounts(context, done, `${phrase(done, true)} at ${place.name}`, left.quotas);
  } finally {
    await opened.close();
  }
}

async function exportTree(
  context: Context,
  source: CopySource,
  place: FilePlace,
  asked: {
    readonly replaces: boolean;
    readonly withoutAcl: boolean;
    readonly options: OptionValues;
  },
): Promise<number> {
  const { output, signal } = context;
  const { replaces, withoutAcl, options } = asked;
  if (existsSync(place.path) && !replaces) {
    throw new CommandError(
      'refused',
      `${escaped(place.path)} is there already; --on-conflict overwrite replaces it`,
    );
  }
  const isDry = options.dryRun === true;
  const writer = isDry
    ? undefined
    : await openExport(place, { from: source.name, root: source.root });
  const counts = noCounts();
  const { fitting, left } =
    place.kind === 'file' ? unquoted(source) : { fitting: source, left: none };
  try {
    for await (const node of fitting.nodes(signal)) {
      if (!withoutAcl) refuseMasked(node, source.root);
      const step = node.mode === 'ephemeral' ? 'ephemeral' : 'create';
      counts[step] += 1;
      if (isDry) sayStep(context, step, node.path, node);
      if (step === 'create') await writer?.node(withoutAcl ? { ...node, acl: undefined } : node);
      output.status(() => `copying: ${summary(counts)}`);
      if (isDry) await output.drained();
    }
    await writer?.commit();
  } catch (error) {
    await writer?.abort();
    throw error;
  }
  return sayCounts(
    context,
    counts,
    isDry
      ? `would write ${counts.create} nodes to ${place.name}`
      : `${counts.create} nodes written to ${place.name}`,
    left.quotas,
  );
}

const none = { quotas: 0 };

/**
 * A backup of a whole server has its quotas in it, and not the server's own nodes that they stand below.
 * They fit the root of a server alone; a node of somebody's that is called the same comes with its parents.
 */
function unquoted(source: CopySource): { fitting: CopySource; left: { quotas: number } } {
  const left = { quotas: 0 };
  async function* nodes(signal: AbortSignal) {
    left.quotas = 0;
    let isSomebodys = false;
    for await (const node of source.nodes(signal)) {
      if (node.path === quotaRoot) isSomebodys = true;
      if (isSomebodys || !node.path.startsWith(`${quotaRoot}/`)) yield node;
      else left.quotas += 1;
    }
  }
  return { fitting: { ...source, nodes }, left };
}

// ── words ─────────────────────────────────────────────────────────────────────────────────────────

const marks: Readonly<Record<Step, string>> = {
  create: '+',
  change: '~',
  acl: '~',
  delete: '-',
  same: '=',
  skip: '!',
  ephemeral: '?',
};

function sayStep({ output }: Context, step: Step, path: string, node: TreeNode | null): void {
  if (output.isJson) {
    output.record({ step, path, bytes: node?.data?.length ?? 0 });
    return;
  }
  const shown = step === 'create' || step === 'change' ? `  ${dataText(node?.data ?? null)}` : '';
  const about =
    step === 'acl' ? '  (its ACL)' : step === 'ephemeral' ? '  (ephemeral, not copied)' : '';
  const why = step === 'skip' ? '  (differs, left as it is)' : '';
  output.line(`${marks[step]} ${escaped(path)}${shown}${about}${why}`);
}

function sayCounts({ output }: Context, counts: Counts, sentence: string, quotas: number): number {
  if (output.isJson) output.record({ counts });
  else {
    output.tell(escaped(sentence));
    if (counts.ephemeral > 0) {
      output.tell(
        `${counts.ephemeral} ephemeral nodes were left out: their sessions are elsewhere`,
      );
    }
    if (quotas > 0) {
      output.tell(`${quotas} nodes of quotas were left out: they belong to the root of a server`);
    }
    if (counts.skip > 0) output.tell(`${counts.skip} nodes differ, and were left as they are`);
  }
  return exitCodes.ok;
}

function phrase({ create, change, acl, delete: deleted, same }: Counts, isDone = false): string {
  const past = isDone ? 'd' : '';
  const parts = [`create${past} ${create}`, `change${past} ${change + acl}`];
  if (deleted > 0) parts.push(`delete${past} ${deleted}`);
  return `${parts.join(', ')} nodes, ${same} equal`;
}

function summary(counts: Counts): string {
  return `${total(counts)} nodes`;
}

function total(counts: Counts): number {
  return Object.values(counts).reduce((sum, each) => sum + each, 0);
}

function onConflictOf({ onConflict }: OptionValues, unless: OnConflict): OnConflict {
  if (onConflict === undefined) return unless;
  const choice = conflictChoices.find((each) => each === onConflict);
  if (choice !== undefined) return choice;
  throw new CommandError('usage', `--on-conflict: one of ${conflictChoices.join(', ')} is wanted`);
}
