/**
 * The console's writes. Each carries the version that its user saw, stands in the audit with what was
 * there before and after, failed ones too, and leaves a way back where there is one.
 *
 * A way back is checked as well: it applies to what the change left, and refuses once somebody else has
 * changed that. What is deleted is kept for it, within limits; ephemeral nodes do not come back.
 */

import {
  type Acl,
  type CallOptions,
  type Client,
  type Created,
  type CreateMode,
  type CreateOptions,
  isZkError,
} from '../client/index.ts';
import { nameOf, parentOf } from '../protocol/index.ts';
import { paced } from '../support/index.ts';
import { limits } from './api.ts';
import type { AuditLog, Noted, Undo } from './audit.ts';
import { ConsoleError } from './console-error.ts';
import { inTurns } from './in-turns.ts';
import {
  aclListing,
  bytesIn,
  type Kept,
  keepNodes,
  listing,
  putAclsBack,
  putBack,
  stateOf,
  takeBack,
  type Written,
} from './keeping.ts';
import { aclOf, aclView, statView } from './node-text.ts';
import { joined, topmost } from './subtrees.ts';
import { orNull } from './tree.ts';
import type {
  AclEntry,
  AuditState,
  ChangedView,
  DeletePreview,
  ImportView,
  StatView,
} from './views.ts';

const sampleMax = 20;

export interface By {
  readonly who: string;
  readonly call: CallOptions;
}

interface Done {
  readonly count?: number;
  readonly before: AuditState | null;
  readonly after: AuditState | null;
  readonly undo?: Undo;
  readonly isTooLarge?: boolean;
}

export class Changes {
  readonly #client: Client;
  readonly #audit: AuditLog;

  constructor(client: Client, audit: AuditLog) {
    this.#client = client;
    this.#audit = audit;
  }

  async create(
    input: {
      path: string;
      data: string;
      mode: CreateMode;
      ttlMs?: number | undefined;
      acl?: readonly AclEntry[] | undefined;
      parents: boolean;
    },
    by: By,
  ): Promise<ChangedView> {
    const data = Buffer.from(input.data, 'base64');
    const above: Written[] = [];
    return this.#noting(
      'create',
      input.path,
      by,
      async () => {
        const options = {
          ...by.call,
          mode: input.mode,
          ...(input.ttlMs !== undefined && { ttlMs: input.ttlMs }),
          ...(input.acl !== undefined && { acl: aclOf(input.acl) }),
        };
        const { path, stat } = input.parents
          ? await this.#createBelow(input.path, data, options, above)
          : await this.#client.create(input.path, data, options);
        const paths = [...above.map((one) => one.path), path];
        const back =
          takeBack(this.#client, [...above, { path, data, before: null, version: 0 }]) ?? undefined;
        // Servers before 3.5 tell no Stat of what they made.
        return {
          path,
          stat: stat ? statView(stat) : null,
          count: paths.length,
          before: null,
          after: stateOf(data, 0),
          ...(back && { undo: wayBack(path, 0, back, { client: this.#client, paths }) }),
        };
      },
      () => this.#doneOf(input.path, above),
    );
  }

  /** As `create` with `parents`; what it made above is put into `made`, so that it can be taken back. */
  async #createBelow(
    path: string,
    data: Buffer | null,
    options: CreateOptions,
    made: Written[],
  ): Promise<Created> {
    try {
      return await this.#client.create(path, data, options);
    } catch (error) {
      if (!isZkError(error, 'NO_NODE')) throw error;
    }
    const { mode: _, ttlMs: __, ...inherited } = options;
    const { acl: ___, ...call } = inherited;
    const missing: string[] = [];
    for (let at = parentOf(path); at !== null && at !== '/'; at = parentOf(at)) {
      if ((await this.#client.exists(at, call)) !== null) break;
      missing.unshift(at);
    }
    for (const at of missing) {
      try {
        await this.#client.create(at, '', inherited);
        made.push({ path: at, data: null, before: null, version: 0 });
      } catch (error) {
        if (!isZkError(error, 'NODE_EXISTS')) throw error;
      }
    }
    return await this.#client.create(path, data, options);
  }

  /** What was written, with its way back: all of a change, or what it came to before it failed. */
  #doneOf(path: string, written: readonly Written[]): Done {
    const back = written.length === 0 ? undefined : takeBack(this.#client, written);
    const old = written.flatMap(({ path: at, before }) =>
      before === null ? [] : [{ path: at, data: before.data }],
    );
    const left = { client: this.#client, paths: written.map((one) => one.path) };
    return {
      count: written.length,
      before: listing(old),
      after: listing(written),
      ...(back === null && { isTooLarge: true }),
      ...(back && { undo: wayBack(path, bytesIn(written), back, left) }),
    };
  }

  async set(input: { path: string; data: string; version: number }, by: By): Promise<ChangedView> {
    const { path, version } = input;
    const data = Buffer.from(input.data, 'base64');
    return this.#noting('set', path, by, async () => {
      const before = await this.#client.get(path, by.call);
      const stat = await this.#client.set(path, data, { ...by.call, version });
      const undo = wayBack(
        path,
        before.stat.dataLength,
        () => this.#client.set(path, before.data, { version: stat.version }),
        { client: this.#client, paths: [path] },
      );
      return {
        path,
        stat: statView(stat),
        before: stateOf(before.data, before.stat.version),
        after: stateOf(data, stat.version),
        // What was read is what was replaced only if nobody came between.
        ...(before.stat.version === version && { undo }),
      };
    });
  }

  async setAcl(
    input: {
      path: string;
      acl: readonly AclEntry[];
      version: number;
      recursive: boolean;
      confirm?: string | undefined;
      count?: number | undefined;
    },
    by: By,
  ): Promise<ChangedView> {
    if (input.recursive) return this.#setAclBelow(input, by);
    const { path, version } = input;
    return this.#noting('acl', path, by, async () => {
      const before = await this.#client.getAcl(path, by.call);
      const acl = aclOf(input.acl, before.acl);
      const stat = await this.#client.setAcl(path, acl, { ...by.call, version });
      const undo = wayBack(
        path,
        0,
        () => this.#client.setAcl(path, before.acl, { version: stat.aversion }),
        { client: this.#client, paths: [path] },
      );
      return {
        path,
        stat: statView(stat),
        before: { data: null, version: before.stat.aversion, acl: aclView(before.acl) },
        after: { data: null, version: stat.aversion, acl: aclView(acl) },
        // What was read is what was replaced only if nobody came between.
        ...(before.stat.aversion === version && { undo }),
      };
    });
  }

  async #setAclBelow(
    input: {
      path: string;
      acl: readonly AclEntry[];
      version: number;
      confirm?: string | undefined;
      count?: number | undefined;
    },
    by: By,
  ): Promise<ChangedView> {
    const { path, version } = input;
    let acl: Acl[] = [];
    let aclBefore: Acl[] = [];
    let kept: Awaited<ReturnType<typeof keepNodes>> = null;
    /** What was set, with the version that it has by that. */
    const left = new Map<string, number>();
    const done = (): Done => {
      const changed = (kept ?? []).filter((node) => left.has(node.path));
      const shown = kept === null ? [{ path, acl: aclBefore }] : changed;
      // Only what stood there until we came is known well enough to be put back.
      const back = changed.flatMap((node) => {
        const version = left.get(node.path)!;
        return version === node.aclVersion + 1 ? [{ ...node, left: version }] : [];
      });
      const undo = wayBack(path, bytesIn(back), () => putAclsBack(this.#client, back), {
        client: this.#client,
        paths: back.map((node) => node.path),
      });
      return {
        count: left.size,
        before: left.size === 0 ? null : aclListing(shown),
        after: left.size === 0 ? null : aclListing(shown.map((node) => ({ ...node, acl }))),
        ...(kept === null && { isTooLarge: true }),
        ...(back.length > 0 && { undo }),
      };
    };
    const work = async () => {
      const preview = await this.below(path, by.call);
      this.#confirm(preview, input.confirm, input.count, 'set the ACL of');
      const first = await this.#client.getAcl(path, by.call);
      acl = aclOf(input.acl, first.acl);
      aclBefore = first.acl;
      kept = await keepNodes(this.#client, [path], preview.count, by.call);
      // All of them first: what the new ACL closes could not be walked through any more.
      const below: string[] = [];
      for await (const { path: at, depth } of paced(this.#client.walk(path, by.call))) {
        if (depth > 0 && below.length < limits.deleteMax) below.push(at);
      }
      const stat = await this.#client.setAcl(path, acl, { ...by.call, version });
      left.set(path, stat.aversion);
      for (const at of below) {
        const set = await this.#client.setAcl(at, acl, by.call).catch((error) => {
          if (isZkError(error, 'NO_NODE')) return null; // it went while we set the others
          throw error;
        });
        if (set !== null) left.set(at, set.aversion);
      }
      return { path, stat: statView(stat), ...done() };
    };
    return this.#noting('acl', path, by, work, done);
  }

  /** How much stands at and below a path, for who is about to change all of it. */
  async below(path: string, call: CallOptions): Promise<DeletePreview> {
    const sample: string[] = [];
    let [count, ephemerals] = [0, 0];
    for await (const { path: at, stat } of paced(this.#client.walk(path, call))) {
      count += 1;
      if (stat.ephemeralOwner > 0n) ephemerals += 1;
      if (sample.length < sampleMax) sample.push(at);
      if (count > limits.deleteMax) break;
    }
    const confirm = path === '/' ? '/' : nameOf(path);
    const isTooMany = count > limits.deleteMax;
    return { paths: [path], count, ephemerals, confirm, sample, isTooMany };
  }

  async preview(paths: readonly string[], call: CallOptions): Promise<DeletePreview> {
    const tops = topmost(paths);
    if (tops.includes('/')) throw new ConsoleError('BAD_INPUT', '/ can not be deleted');
    const sample: string[] = [];
    let [count, ephemerals] = [0, 0];
    for (const path of tops) {
      const one = await this.below(path, call);
      count += one.count;
      ephemerals += one.ephemerals;
      sample.push(...one.sample.slice(0, sampleMax - sample.length));
      if (count > limits.deleteMax) break;
    }
    const confirm = paths.length === 1 ? nameOf(paths[0]!) : String(count);
    return { paths, count, ephemerals, confirm, sample, isTooMany: count > limits.deleteMax };
  }

  /** Nothing happens to more nodes than were shown, and nothing that was not meant. */
  #confirm(
    preview: DeletePreview,
    confirm: string | undefined,
    count: number | undefined,
    what: string,
  ): void {
    if (preview.isTooMany) {
      const why = `more than ${limits.deleteMax} nodes; use the command line`;
      throw new ConsoleError('TOO_LARGE', why);
    }
    if (confirm !== preview.confirm) {
      const why = `type ${preview.confirm} to ${what} ${preview.count} nodes`;
      throw new ConsoleError('CONFLICT', why);
    }
    if (count === undefined || preview.count > count) {
      const why = `there are ${preview.count} nodes by now, and not ${count ?? 'as many as shown'}; look again`;
      throw new ConsoleError('CONFLICT', why);
    }
  }

  async delete(
    { paths, confirm, count }: { paths: readonly string[]; confirm: string; count: number },
    by: By,
  ): Promise<ChangedView & { count: number }> {
    const tops = topmost(paths);
    const shown = tops.length === 1 ? tops[0]! : `${tops[0]} and ${tops.length - 1} more`;
    let deleted = 0;
    /** What is gone of what was kept. */
    let kept: readonly Kept[] | null = null;
    const gone: Kept[] = [];
    const done = (): Done => {
      const [first] = gone;
      const before = gone.length === 1 ? stateOf(first!.data, null) : listing(gone);
      const back = () => putBack(this.#client, gone);
      return {
        count: deleted,
        before,
        after: null,
        ...(kept === null && { isTooLarge: true }),
        ...(first && { undo: wayBack(tops[0]!, bytesIn(gone), back) }),
      };
    };
    const work = async () => {
      const preview = await this.preview(paths, by.call);
      this.#confirm(preview, confirm, count, 'delete');
      kept = await keepNodes(this.#client, tops, preview.count, by.call);
      for (const path of tops) {
        const [before, mine] = [deleted, (kept ?? []).filter((node) => isAtOrBelow(node, path))];
        const onProgress = (many: number) => {
          deleted = before + many;
        };
        try {
          await this.#client.deleteRecursive(path, { ...by.call, onProgress });
          gone.push(...mine);
        } catch (error) {
          gone.push(...(await this.#goneOf(mine)));
          throw error;
        }
      }
      return { path: shown, stat: null, ...done() };
    };
    const changed = await this.#noting('delete', shown, by, work, done);
    return { ...changed, count: deleted };
  }

  /** Of nodes whose delete failed somewhere: those that are not there any more. None if nobody can tell. */
  async #goneOf(kept: readonly Kept[]): Promise<Kept[]> {
    const looks = await inTurns(kept, 64, async (node) =>
      this.#client.exists(node.path).then(
        (stat) => (stat === null ? [node] : []),
        (error: unknown) => {
          if (isZkError(error)) return [];
          throw error;
        },
      ),
    );
    return looks.flat();
  }

  async import(
    input: {
      path: string;
      nodes: readonly {
        path: string;
        data: string | null;
        acl?: readonly AclEntry[] | undefined;
      }[];
      onConflict: 'fail' | 'overwrite' | 'skip';
      dryRun: boolean;
    },
    by: By,
  ): Promise<ImportView> {
    const steps = input.nodes.map(({ path, data, acl }) => ({
      path: joined(input.path, path),
      data: data === null ? null : Buffer.from(data, 'base64'),
      acl: acl && aclOf(acl),
    }));
    const there = new Map<string, { version: number; data: Buffer | null }>();
    for (const { path } of steps) {
      const found = await this.#client.get(path, by.call).catch(orNull);
      if (found !== null) there.set(path, { version: found.stat.version, data: found.data });
    }
    const isSame = (step: (typeof steps)[number]) => {
      const found = there.get(step.path);
      return found !== undefined && bytesOf(found.data).equals(bytesOf(step.data));
    };
    const same = steps.filter(isSame).length;
    const fresh = steps.filter(({ path }) => !there.has(path));
    const others = steps.filter((step) => there.has(step.path) && !isSame(step));
    const overwritten = input.onConflict === 'overwrite' ? others : [];
    const view = {
      created: fresh.length,
      overwritten: overwritten.length,
      skipped: input.onConflict === 'skip' ? others.length : 0,
      same,
      conflicts: others.slice(0, 100).map(({ path }) => path),
      done: false,
    };
    if (input.dryRun) return view;
    if (input.onConflict === 'fail' && others.length > 0) {
      throw new ConsoleError('CONFLICT', `${others.length} nodes are there with other data`);
    }
    const written: Written[] = [];
    await this.#noting(
      'import',
      input.path,
      by,
      async () => {
        for (const { path, data, acl } of fresh) {
          await this.#createBelow(path, data, { ...by.call, ...(acl && { acl }) }, written);
          written.push({ path, data, before: null, version: 0 });
        }
        for (const { path, data } of overwritten) {
          const before = there.get(path)!;
          const { version } = await this.#client.set(path, data, {
            ...by.call,
            version: before.version,
          });
          written.push({ path, data, before, version });
        }
        return { path: input.path, stat: null, ...this.#doneOf(input.path, written) };
      },
      () => this.#doneOf(input.path, written),
    );
    return { ...view, done: true };
  }

  async undo(id: number, by: By): Promise<ChangedView> {
    const found = this.#audit.undoOf(id);
    if (found === null)
      throw new ConsoleError('NOT_FOUND', 'that can not be taken back (any more)');
    const changed = await this.#noting('undo', found.entry.path, by, async () => {
      const { path } = await found.undo.run();
      return { path, stat: null, before: found.entry.after, after: found.entry.before };
    });
    this.#audit.undone(id);
    return changed;
  }

  /** Does it, and writes down that it was done, or why not. */
  async #noting(
    action: Noted['action'],
    path: string,
    { who }: By,
    work: () => Promise<{ path: string; stat: StatView | null } & Done>,
    /** Where it fails: what it had done until then. */
    partly?: () => Done,
  ): Promise<ChangedView> {
    try {
      const { undo, isTooLarge, stat, count = 1, ...done } = await work();
      const way = undo ? 'possible' : isTooLarge ? 'tooLarge' : 'no';
      const entry = this.#audit.add(
        { action, who, ok: true, note: null, count, undo: way, ...done },
        undo,
      );
      return { path: done.path, stat, audit: entry.id };
    } catch (error) {
      const note = error instanceof Error ? error.message : String(error);
      const nothing: Done = { before: null, after: null };
      const { undo, isTooLarge, count = 0, ...done } = partly?.() ?? nothing;
      const way = undo ? 'possible' : isTooLarge && count > 0 ? 'tooLarge' : 'no';
      this.#audit.add({ action, path, who, ok: false, note, count, undo: way, ...done }, undo);
      throw error;
    }
  }
}

/**
 * It is run for another request than the one that made it, so that it has no signal of that.
 *
 * `left` is what the change wrote: a node that was deleted and made anew since has the versions of its
 * beginning again, and only its czxid tells it from ours.
 */
export function wayBack(
  path: string,
  bytes: number,
  work: () => Promise<unknown>,
  left?: { readonly client: Client; readonly paths: readonly string[] },
): Undo {
  const zxid = left?.client.lastZxid ?? 0n;
  return {
    bytes,
    async run() {
      for (const at of left?.paths ?? []) {
        const stat = await statOf(left!.client, at);
        if (stat === null || stat.czxid <= zxid) continue;
        throw new ConsoleError('CONFLICT', `${at}: somebody deleted it since, and made another`);
      }
      await work();
      return { path };
    },
  };
}

/** Who may change an ACL may see its Stat, also of a node that is closed otherwise. */
async function statOf(client: Client, path: string) {
  try {
    return await client.exists(path);
  } catch (error) {
    if (!isZkError(error, 'NO_AUTH')) throw error;
    return (await client.getAcl(path)).stat;
  }
}

function isAtOrBelow({ path }: Kept, top: string): boolean {
  return `${path}/`.startsWith(`${top}/`);
}

function bytesOf(data: Buffer | null): Buffer {
  return data ?? Buffer.alloc(0);
}
