/**
 * The console's writes. Each carries the version that its user saw, stands in the audit with what was
 * there before and after, failed ones too, and leaves a way back where there is one.
 *
 * A way back is checked as well: it applies to what the change left, and refuses once somebody else has
 * changed that. What is deleted is kept for it, within limits; ephemeral nodes do not come back.
 */

import type { CallOptions, Client, CreateMode } from '../client/index.ts';
import { nameOf } from '../protocol/index.ts';
import { paced } from '../support/index.ts';
import { limits } from './api.ts';
import type { AuditLog, Noted, Undo } from './audit.ts';
import { ConsoleError } from './console-error.ts';
import {
  aclListing,
  bytesIn,
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
    return this.#noting('create', input.path, by, async () => {
      const { path, stat } = await this.#client.create(input.path, {
        ...by.call,
        data,
        mode: input.mode,
        parents: input.parents,
        ...(input.ttlMs !== undefined && { ttlMs: input.ttlMs }),
        ...(input.acl !== undefined && { acl: aclOf(input.acl) }),
      });
      const undo = wayBack(path, 0, () => this.#client.delete(path, { version: 0 }));
      // Servers before 3.5 tell no Stat of what they made.
      return {
        path,
        stat: stat ? statView(stat) : null,
        before: null,
        after: stateOf(data, 0),
        undo,
      };
    });
  }

  async set(input: { path: string; data: string; version: number }, by: By): Promise<ChangedView> {
    const { path, version } = input;
    const data = Buffer.from(input.data, 'base64');
    return this.#noting('set', path, by, async () => {
      const before = await this.#client.get(path, by.call);
      const stat = await this.#client.set(path, data, { ...by.call, version });
      const undo = wayBack(path, before.stat.dataLength, () =>
        this.#client.set(path, before.data, { version: stat.version }),
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
      const undo = wayBack(path, 0, () =>
        this.#client.setAcl(path, before.acl, { version: stat.aversion }),
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
    return this.#noting('acl', path, by, async () => {
      const preview = await this.below(path, by.call);
      this.#confirm(preview, input.confirm, input.count, 'set the ACL of');
      const first = await this.#client.getAcl(path, by.call);
      const acl = aclOf(input.acl, first.acl);
      const kept = await keepNodes(this.#client, [path], preview.count, by.call);
      const stat = await this.#client.setAcl(path, acl, { ...by.call, version });
      const left = new Map([[path, stat.aversion]]);
      for await (const { path: at, depth } of paced(this.#client.walk(path, by.call))) {
        if (depth === 0) continue;
        const set = await this.#client.setAcl(at, acl, by.call).catch(orNull);
        if (set !== null) left.set(at, set.aversion);
        if (left.size > limits.deleteMax) break;
      }
      const back = kept?.flatMap((node) => {
        const version = left.get(node.path);
        // Only what stood there until we came is known well enough to be put back.
        return version === node.aclVersion + 1 ? [{ ...node, left: version }] : [];
      });
      const changed = kept ?? [{ path, acl: first.acl }];
      return {
        path,
        stat: statView(stat),
        count: left.size,
        before: aclListing(changed),
        after: aclListing(changed.map((node) => ({ ...node, acl }))),
        ...(back === undefined
          ? { isTooLarge: true }
          : { undo: wayBack(path, bytesIn(kept!), () => putAclsBack(this.#client, back)) }),
      };
    });
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
    const changed = await this.#noting('delete', shown, by, async () => {
      const preview = await this.preview(paths, by.call);
      this.#confirm(preview, confirm, count, 'delete');
      const kept = await keepNodes(this.#client, tops, preview.count, by.call);
      for (const path of tops) deleted += await this.#client.deleteRecursive(path, by.call);
      const first = kept?.[0];
      return {
        path: shown,
        stat: null,
        count: deleted,
        before:
          first === undefined
            ? null
            : kept!.length === 1
              ? stateOf(first.data, null)
              : listing(kept!),
        after: null,
        ...(kept === null
          ? { isTooLarge: true }
          : { undo: wayBack(tops[0]!, bytesIn(kept), () => putBack(this.#client, kept)) }),
      };
    });
    return { ...changed, count: deleted };
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
    await this.#noting('import', input.path, by, async () => {
      const written: Written[] = [];
      for (const { path, data, acl } of fresh) {
        await this.#client.create(path, { ...by.call, data, parents: true, ...(acl && { acl }) });
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
      const back = takeBack(this.#client, written);
      return {
        path: input.path,
        stat: null,
        count: written.length,
        before: listing(
          written.flatMap(({ path, before }) =>
            before === null ? [] : [{ path, data: before.data }],
          ),
        ),
        after: listing(written),
        ...(back === null
          ? { isTooLarge: true }
          : { undo: wayBack(input.path, bytesIn(written), back) }),
      };
    });
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
    work: () => Promise<{
      path: string;
      stat: StatView | null;
      count?: number;
      before: AuditState | null;
      after: AuditState | null;
      undo?: Undo;
      isTooLarge?: boolean;
    }>,
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
      const nothing = { count: 0, before: null, after: null, undo: 'no' } as const;
      this.#audit.add({ action, path, who, ok: false, note, ...nothing });
      throw error;
    }
  }
}

/** It is run for another request than the one that made it, so that it has no signal of that. */
export function wayBack(path: string, bytes: number, work: () => Promise<unknown>): Undo {
  return {
    bytes,
    async run() {
      await work();
      return { path };
    },
  };
}

function bytesOf(data: Buffer | null): Buffer {
  return data ?? Buffer.alloc(0);
}
