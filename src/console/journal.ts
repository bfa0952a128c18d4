/**
 * What `drover` command lines wrote, in the audit beside what was written from here.
 *
 * In: lines of the journal that the command line keeps (`sources.journal`), checked by schema. Out: audit
 * entries with before, after and a way back where all of it is known: one entry a command. A way back
 * applies to what the command left, by the zxid and the version of each node, all of it or nothing; ACLs
 * stand in no multi, and are taken back where they are all that was changed.
 */

import { z } from 'zod';
import type { Acl, Client, MultiOp } from '../client/index.ts';
import type { AuditLog, Noted, Undo } from './audit.ts';
import { wayBack } from './changes.ts';
import { ConsoleError } from './console-error.ts';
import { bytesIn, listing, putAclsBack, stateOf } from './keeping.ts';
import { aclView, hex } from './node-text.ts';
import type { AuditState } from './views.ts';

const nodeNote = z.object({
  data: z.base64().nullable().optional(),
  version: z.int(),
  acl: z
    .array(z.tuple([z.int(), z.string(), z.string()]).readonly())
    .readonly()
    .optional(),
  aclVersion: z.int().optional(),
  mode: z.enum(['persistent', 'container', 'other']),
  zxid: z.string().optional(),
});
const writeNote = z.object({
  op: z.enum(['create', 'set', 'delete', 'setAcl', 'reconfig']),
  path: z.string().startsWith('/'),
  before: nodeNote.nullable().optional(),
  after: nodeNote.nullable().optional(),
  isUnsure: z.boolean().optional(),
});
const journalLine = z.object({
  version: z.literal(1),
  atMs: z.number(),
  who: z.string(),
  command: z.string(),
  exitCode: z.int(),
  servers: z.array(z.string()),
  /** Of all writes; `writes` may hold fewer. */
  count: z.int(),
  writes: z.array(writeNote).max(1_000).readonly(),
});
export type JournalLine = z.output<typeof journalLine>;
type WriteNote = z.output<typeof writeNote>;
type NodeNote = z.output<typeof nodeNote>;

/** One node, from before the first write of a command to after its last. */
interface Changed {
  readonly path: string;
  readonly before: NodeNote | null | undefined;
  readonly after: NodeNote | null | undefined;
  readonly ops: ReadonlySet<WriteNote['op']>;
}

export class Journal {
  readonly #client: Client;
  readonly #audit: AuditLog;
  readonly #news: (() => Promise<readonly unknown[]>) | undefined;

  constructor(
    client: Client,
    audit: AuditLog,
    news: (() => Promise<readonly unknown[]>) | undefined,
  ) {
    this.#client = client;
    this.#audit = audit;
    this.#news = news;
  }

  get isKept(): boolean {
    return this.#news !== undefined;
  }

  /** Takes in what was written down since, and says how many. A line that is none is left out. */
  async catchUp(): Promise<number> {
    let taken = 0;
    for (const given of (await this.#news?.()) ?? []) {
      const line = journalLine.safeParse(given);
      if (!line.success || line.data.writes.length === 0) continue;
      const { noted, undo } = this.#entry(line.data);
      this.#audit.insert(noted, undo, line.data.atMs);
      taken += 1;
    }
    return taken;
  }

  #entry(line: JournalLine): { noted: Noted; undo: Undo | undefined } {
    const nodes = changedIn(line.writes);
    const isWhole = line.writes.length === line.count;
    const undo = isWhole ? this.#wayBack(nodes, line.writes) : undefined;
    const [first] = nodes;
    const isOne = nodes.length === 1;
    const unsure = line.writes.some(({ isUnsure }) => isUnsure === true);
    const failed = line.exitCode === 0 ? '' : `, exit code ${line.exitCode}`;
    const doubt = unsure ? '; whether all of it happened is not known' : '';
    const noted: Noted = {
      action: 'cli',
      path: first?.path ?? line.writes[0]!.path,
      who: `${line.who}, command line`,
      ok: line.exitCode === 0,
      note: `drover ${line.command}${failed}${doubt}`,
      count: line.count,
      before: isOne ? stateIn(first!.before) : listed(nodes, 'before'),
      after: isOne ? stateIn(first!.after) : listed(nodes, 'after'),
      undo: undo !== undefined ? 'possible' : isWhole ? 'no' : 'tooLarge',
    };
    return { noted, undo };
  }

  #wayBack(nodes: readonly Changed[], writes: readonly WriteNote[]): Undo | undefined {
    const first = nodes[0]?.path;
    const isKnown = writes.every(({ isUnsure, op }) => isUnsure !== true && op !== 'reconfig');
    if (first === undefined || !isKnown) return undefined;
    if (writes.every(({ op }) => op === 'setAcl')) return this.#aclsBack(nodes, first);
    // The last that was touched goes first: children before parents, and parents before children again.
    const steps = nodes.toReversed().map(stepBack);
    if (steps.some((step) => step === null)) return undefined;
    const bytes = bytesIn(nodes.map(({ path, before }) => ({ path, data: bytesOf(before) })));
    return wayBack(first, bytes, async () => {
      for (const { path, after } of nodes) {
        if (after?.zxid === undefined) continue;
        const stat = await this.#client.exists(path);
        if (stat === null || hex(stat.mzxid) !== after.zxid) throw changedSince(path);
      }
      await this.#client.multi(steps as MultiOp[]);
    });
  }

  #aclsBack(nodes: readonly Changed[], first: string): Undo | undefined {
    const kept = nodes.flatMap(({ path, before, after }) => {
      const acl = before?.acl?.map(entryOf);
      const left = after?.aclVersion;
      return acl === undefined || left === undefined ? [] : [{ path, acl, left }];
    });
    if (kept.length !== nodes.length) return undefined;
    return wayBack(first, 0, () => putAclsBack(this.#client, kept));
  }
}

/** Several writes to one node are one change of it; what came and went is none. In the order of the last. */
function changedIn(writes: readonly WriteNote[]): Changed[] {
  const nodes = new Map<string, Changed>();
  for (const { path, op, before, after } of writes) {
    const earlier = nodes.get(path);
    nodes.delete(path);
    const ops = new Set([...(earlier?.ops ?? []), op]);
    nodes.set(path, { path, before: earlier === undefined ? before : earlier.before, after, ops });
  }
  return [...nodes.values()].filter(({ before, after }) => before !== null || after !== null);
}

/** Null: there is no way. */
function stepBack({ path, before, after, ops }: Changed): MultiOp | null {
  if (ops.has('setAcl') || before === undefined || after === undefined) return null;
  if (before === null) {
    // An ephemeral node goes by itself, and with its session.
    return after!.mode === 'other' ? null : { op: 'delete', path, version: after!.version };
  }
  if (before.data === undefined) return null;
  if (after !== null) return { op: 'set', path, data: bytesOf(before), version: after.version };
  if (before.acl === undefined || before.mode === 'other') return null;
  const { acl, mode } = before;
  return { op: 'create', path, data: bytesOf(before), acl: acl.map(entryOf), mode };
}

function bytesOf(note: NodeNote | null | undefined): Buffer | null {
  return note?.data == null ? null : Buffer.from(note.data, 'base64');
}

function entryOf([perms, scheme, id]: readonly [number, string, string]): Acl {
  return { perms, id: { scheme, id } };
}

function stateIn(note: NodeNote | null | undefined): AuditState | null {
  if (note == null) return null;
  const state = stateOf(bytesOf(note), note.version);
  return note.acl === undefined ? state : { ...state, acl: aclView(note.acl.map(entryOf)) };
}

function listed(nodes: readonly Changed[], side: 'before' | 'after'): AuditState | null {
  return listing(
    nodes.flatMap((node) => {
      const note = node[side];
      return note == null ? [] : [{ path: node.path, data: bytesOf(note) }];
    }),
  );
}

function changedSince(path: string): ConsoleError {
  return new ConsoleError('CONFLICT', `${path}: somebody changed it since`);
}
