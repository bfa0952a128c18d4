/**
 * `drover diff A B`: what differs between two subtrees, on one server or on two.
 *
 * Both are walked side by side in the order of their names, so that memory does not grow with them.
 * Data is compared, with --acl the ACLs too; versions, zxids and times are not: they always differ.
 * Exit codes as diff(1) has them: 0 is no difference, 1 is some.
 */

import type { Acl, Client } from '../client/index.ts';
import type { Context, OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { diffData } from './line-diff.ts';
import { aclText, dataJson, escaped, foundCode } from './output.ts';
import { isFilePlace, type OpenPlace, openPlace, placeOf } from './places.ts';
import { type Visited, visitSubtree } from './subtree.ts';

type Kind = 'removed' | 'added' | 'changed' | 'acl';
const signs = { removed: '-', added: '+', changed: '~', acl: '~' } as const;
const colours = { removed: 'red', added: 'green', changed: 'yellow', acl: 'yellow' } as const;

export async function diff(
  context: Context,
  [left = '', right = '']: readonly string[],
  options: OptionValues,
): Promise<number> {
  const [a, b] = [await opened(context, left), await opened(context, right)];
  try {
    return await compare(context, a, b, options);
  } finally {
    await Promise.all([a.close(), b.close()]);
  }
}

async function opened(context: Context, text: string): Promise<OpenPlace> {
  const place = placeOf(context, text);
  if (!isFilePlace(place)) return openPlace(context, place);
  const why = `${escaped(text)} is no subtree of a server`;
  throw new CommandError('usage', `${why}; drover cp --dry-run compares with files`);
}

async function compare(
  context: Context,
  a: OpenPlace,
  b: OpenPlace,
  options: OptionValues,
): Promise<number> {
  const { output, signal } = context;
  const walkA = visitSubtree(a.client, a.path, { signal, withData: true });
  const walkB = visitSubtree(b.client, b.path, { signal, withData: true });
  const counts: Record<Kind, number> = { removed: 0, added: 0, changed: 0, acl: 0 };
  let nodes = 0;
  let [left, right] = await Promise.all([walkA.next(), walkB.next()]);
  while (!left.done || !right.done) {
    nodes += 1;
    output.status(() => `${nodes} nodes`);
    const nameA = left.done ? undefined : below(a.path, left.value.path);
    const nameB = right.done ? undefined : below(b.path, right.value.path);
    const order = compareNames(nameA, nameB);
    if (order < 0) {
      tell(context, counts, 'removed', nameA!, (left.value as Visited).data, null);
      left = await walkA.next();
    } else if (order > 0) {
      tell(context, counts, 'added', nameB!, null, (right.value as Visited).data);
      right = await walkB.next();
    } else {
      const [one, other] = [left.value as Visited, right.value as Visited];
      if (!sameBytes(one.data, other.data)) {
        tell(context, counts, 'changed', nameA!, one.data, other.data);
      }
      if (options.acl === true) await compareAcls(context, counts, [a, b], [one, other], nameA!);
      [left, right] = await Promise.all([walkA.next(), walkB.next()]);
    }
    await output.paced();
  }
  const { removed, added, changed, acl } = counts;
  if (!output.isJson) {
    output.tell(`${removed} only on the left, ${added} only on the right, ${changed + acl} differ`);
  }
  return removed + added + changed + acl > 0 ? foundCode : exitCodes.ok;
}

function below(root: string, path: string): string {
  return root === '/' ? path.slice(1) : path.slice(root.length + 1);
}

/** Name by name, as the walks go; what has ended comes last. */
export function compareNames(a: string | undefined, b: string | undefined): number {
  if (a === undefined || b === undefined)
    return (a === undefined ? 1 : 0) - (b === undefined ? 1 : 0);
  const [namesA, namesB] = [a.split('/'), b.split('/')];
  for (const [i, name] of namesA.entries()) {
    const other = namesB[i];
    if (other === undefined) return 1;
    if (name !== other) return name < other ? -1 : 1;
  }
  return namesA.length - namesB.length;
}

function sameBytes(a: Buffer | null, b: Buffer | null): boolean {
  return (a ?? Buffer.alloc(0)).equals(b ?? Buffer.alloc(0));
}

function tell(
  { output }: Context,
  counts: Record<Kind, number>,
  kind: Kind,
  name: string,
  before: Buffer | null,
  after: Buffer | null,
): void {
  counts[kind] += 1;
  if (output.isJson) {
    output.record({ kind, path: name, left: dataJson(before), right: dataJson(after) });
    return;
  }
  output.line(output.paint(colours[kind], `${signs[kind]} ${escaped(name) || '.'}`));
  if (kind === 'changed') for (const line of diffData(before, after)) output.line(`    ${line}`);
}

async function compareAcls(
  { output, signal }: Context,
  counts: Record<Kind, number>,
  [a, b]: readonly [OpenPlace, OpenPlace],
  [one, other]: readonly [Visited, Visited],
  name: string,
): Promise<void> {
  const aclOf = async (client: Client, path: string): Promise<Acl[]> =>
    (await client.getAcl(path, { signal })).acl;
  const acls = await Promise.all([aclOf(a.client, one.path), aclOf(b.client, other.path)]);
  const [left, right] = acls.map((acl) => aclText(acl).split(',').sort().join(','));
  if (left === right) return;
  counts.acl += 1;
  if (output.isJson) output.record({ kind: 'acl', path: name, left, right });
  else output.line(output.paint('yellow', `~ ${escaped(name) || '.'}  ${left} -> ${right}`));
}
