/**
 * `drover diff A B`: what differs between two subtrees, on servers, in files or in folders.
 *
 * Both are walked side by side in the order of their names (diff-side.ts). Data is compared, with --acl
 * the ACLs too; versions, zxids and times are not: they always differ. Exit codes as diff(1) has them:
 * 0 is no difference, 1 is some.
 */

import type { Context, OptionValues } from './command.ts';
import { compareNames, type DiffNode, type DiffSide, openSides } from './diff-side.ts';
import { exitCodes } from './exit-codes.ts';
import { diffData } from './line-diff.ts';
import { aclText, dataJson, escaped, foundCode } from './output.ts';
import { sameAcl, sameData } from './tree-node.ts';

type Kind = 'removed' | 'added' | 'changed' | 'acl';
const signs = { removed: '-', added: '+', changed: '~', acl: '~' } as const;
const colours = { removed: 'red', added: 'green', changed: 'yellow', acl: 'yellow' } as const;

export async function diff(
  context: Context,
  [left = '', right = '']: readonly string[],
  options: OptionValues,
): Promise<number> {
  const [a, b] = await openSides(context, [left, right]);
  try {
    return await compare(context, a, b, options);
  } finally {
    await Promise.all([a.close(), b.close()]);
  }
}

async function compare(
  context: Context,
  a: DiffSide,
  b: DiffSide,
  options: OptionValues,
): Promise<number> {
  const { output } = context;
  const counts: Record<Kind, number> = { removed: 0, added: 0, changed: 0, acl: 0 };
  let nodes = 0;
  const next = async ({ nodes: walk }: DiffSide) => (await walk.next()).value ?? undefined;
  let [one, other] = await Promise.all([next(a), next(b)]);
  while (one !== undefined || other !== undefined) {
    nodes += 1;
    output.status(() => `${nodes} nodes`);
    const order = orderOf(one, other);
    if (order < 0) {
      tell(context, counts, 'removed', one!.name, one!.data, null);
      one = await next(a);
    } else if (order > 0) {
      tell(context, counts, 'added', other!.name, null, other!.data);
      other = await next(b);
    } else {
      const [left, right] = [one!, other!];
      const isKnown = left.data !== undefined && right.data !== undefined;
      if (isKnown && !sameData(left.data ?? null, right.data ?? null)) {
        tell(context, counts, 'changed', left.name, left.data, right.data);
      }
      if (options.acl === true) await compareAcls(context, counts, left, right);
      [one, other] = await Promise.all([next(a), next(b)]);
    }
    await output.paced();
  }
  const { removed, added, changed, acl } = counts;
  if (!output.isJson) {
    output.tell(`${removed} only on the left, ${added} only on the right, ${changed + acl} differ`);
  }
  return removed + added + changed + acl > 0 ? foundCode : exitCodes.ok;
}

/** What has ended comes last. */
function orderOf(one: DiffNode | undefined, other: DiffNode | undefined): number {
  if (one === undefined) return 1;
  return other === undefined ? -1 : compareNames(one.name, other.name);
}

function tell(
  { output }: Context,
  counts: Record<Kind, number>,
  kind: Kind,
  name: string,
  before: Buffer | null | undefined,
  after: Buffer | null | undefined,
): void {
  counts[kind] += 1;
  if (output.isJson) {
    output.record({
      kind,
      path: name,
      left: dataJson(before ?? null),
      right: dataJson(after ?? null),
    });
    return;
  }
  output.line(output.paint(colours[kind], `${signs[kind]} ${escaped(name) || '.'}`));
  if (kind === 'changed') {
    for (const line of diffData(before ?? null, after ?? null)) output.line(`    ${line}`);
  }
}

async function compareAcls(
  { output }: Context,
  counts: Record<Kind, number>,
  one: DiffNode,
  other: DiffNode,
): Promise<void> {
  const [a, b] = await Promise.all([one.acl(), other.acl()]);
  if (sameAcl(a, b)) return;
  counts.acl += 1;
  const [left, right] = [aclText(a ?? []), aclText(b ?? [])];
  if (output.isJson) output.record({ kind: 'acl', path: one.name, left, right });
  else output.line(output.paint('yellow', `~ ${escaped(one.name) || '.'}  ${left} -> ${right}`));
}
