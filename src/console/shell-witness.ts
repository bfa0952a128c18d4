/**
 * What a line of the shell did to the node that it names: looked at before and after, for the audit.
 *
 * In: the line, before it is run. Out: before, after and a way back, as for a change by a button. Only lines
 * that change one node, or delete it with all below, are understood (`understood`); of others, and of what
 * is too large to be kept, the audit has the command alone. The look is not part of the change: where
 * somebody else came between, there is no way back.
 */

import type { CallOptions, Client } from '../client/index.ts';
import { childOf } from '../protocol/index.ts';
import type { Undo } from './audit.ts';
import { wayBack } from './changes.ts';
import { bytesIn, type Kept, keepNodes, listing, putBack, stateOf } from './keeping.ts';
import { aclView } from './node-text.ts';
import { orNull } from './tree.ts';
import type { AuditEntry, AuditState } from './views.ts';

const understood: ReadonlySet<string> = new Set([
  ...['create', 'set', 'delete', 'setAcl', 'setquota', 'delquota'],
  ...['deleteall', 'rmr'],
]);
const deletesBelow: ReadonlySet<string> = new Set(['deleteall', 'rmr']);

export interface Witnessed {
  readonly path: string;
  readonly count: number;
  readonly before: AuditState | null;
  readonly after: AuditState | null;
  readonly undo: AuditEntry['undo'];
  readonly way?: Undo;
}

type Look = Awaited<ReturnType<typeof lookAt>>;

export class ShellWitness {
  readonly #client: Client;
  readonly #call: CallOptions;
  readonly #path: string;
  readonly #before: Look;
  /** All below, where it is about to go; null: too much. */
  readonly #kept: readonly Kept[] | null;

  private constructor(
    client: Client,
    call: CallOptions,
    path: string,
    before: Look,
    kept: readonly Kept[] | null,
  ) {
    this.#client = client;
    this.#call = call;
    this.#path = path;
    this.#before = before;
    this.#kept = kept;
  }

  /** Undefined: the line is none that is understood. */
  static async before(
    client: Client,
    { line, cwd }: { line: string; cwd: string },
    call: CallOptions,
  ): Promise<ShellWitness | undefined> {
    const [command, ...words] = wordsOf(line);
    if (command === undefined || !understood.has(command)) return undefined;
    const path = pathOf(words, cwd);
    if (path === undefined) return undefined;
    const before = await lookAt(client, path, call);
    const isGoing = deletesBelow.has(command) && before !== null;
    const kept = isGoing ? await keepNodes(client, [path], 1, call) : [];
    return new ShellWitness(client, call, path, before, kept);
  }

  /** @param said what the command printed: only that has the name of a sequential node. */
  async after(said: string): Promise<Witnessed> {
    const made = this.#before === null ? /^(?:Created )?(\/\S+)\s*$/m.exec(said)?.[1] : undefined;
    const path = made?.startsWith(this.#path) ? made : this.#path;
    const after = await lookAt(this.#client, path, this.#call);
    const before = this.#before;
    const seen = { path, count: 1, before: stateIn(before), after: stateIn(after) };
    if (before === null && after === null) return { ...seen, undo: 'no' };
    if (before !== null && after === null) return this.#gone(before, seen);
    const way = this.#wayBack(path, before, after!);
    return way === undefined ? { ...seen, undo: 'no' } : { ...seen, undo: 'possible', way };
  }

  #gone(before: NonNullable<Look>, seen: Omit<Witnessed, 'undo'>): Witnessed {
    const { path, data, acl, mode } = before;
    if (this.#kept === null) return { ...seen, undo: 'tooLarge' };
    if (mode === 'ephemeral') return { ...seen, undo: 'no' };
    const nodes =
      this.#kept.length > 0
        ? this.#kept
        : [{ path, data, acl: acl.acl, aclVersion: acl.stat.aversion, mode }];
    return {
      ...seen,
      count: nodes.length,
      before: nodes.length > 1 ? listing(nodes) : seen.before,
      undo: 'possible',
      way: wayBack(path, bytesIn(nodes), () => putBack(this.#client, nodes)),
    };
  }

  #wayBack(path: string, before: Look, after: NonNullable<Look>): Undo | undefined {
    const client = this.#client;
    const { version } = after.stat;
    const left = { client, paths: [path] };
    if (before === null) return wayBack(path, 0, () => client.delete(path, { version }), left);
    const isSet = version === before.stat.version + 1;
    const isAcl = after.acl.stat.aversion === before.acl.stat.aversion + 1;
    if (isSet === isAcl) return undefined; // nothing changed, or more than one line does
    if (isSet && after.stat.czxid === before.stat.czxid) {
      const { data } = before;
      const bytes = data?.length ?? 0;
      return wayBack(path, bytes, () => client.set(path, data, { version }), left);
    }
    const { acl } = before.acl;
    const aclLeft = { version: after.acl.stat.aversion };
    return isAcl ? wayBack(path, 0, () => client.setAcl(path, acl, aclLeft), left) : undefined;
  }
}

async function lookAt(client: Client, path: string, call: CallOptions) {
  const [node, acl] = await Promise.all([
    client.get(path, call).catch(orNull),
    client.getAcl(path, call).catch(orNull),
  ]);
  if (node === null || acl === null) return null;
  const owner = node.stat.ephemeralOwner;
  const mode = owner > 0n ? 'ephemeral' : owner === -(1n << 63n) ? 'container' : 'persistent';
  return { path, ...node, acl, mode } as const;
}

function stateIn(look: Look): AuditState | null {
  if (look === null) return null;
  return { ...stateOf(look.data, look.stat.version), acl: aclView(look.acl.acl) };
}

function wordsOf(line: string): string[] {
  return [...line.trim().matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double ?? single ?? plain ?? '',
  );
}

/** The first that can be a path: an absolute one, or else the first that is no flag and no number. */
function pathOf(words: readonly string[], cwd: string): string | undefined {
  const found =
    words.find((word) => word.startsWith('/')) ??
    words.find((word) => !word.startsWith('-') && !/^\d+$/.test(word));
  if (found === undefined || found === '') return undefined;
  const names = found.split('/').filter((name) => name !== '');
  let path = found.startsWith('/') ? '/' : cwd;
  for (const name of names) {
    if (name === '..') path = path.slice(0, path.lastIndexOf('/')) || '/';
    else if (name !== '.') path = childOf(path, name);
  }
  return path;
}
