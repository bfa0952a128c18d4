/**
 * The console's writes. Each carries the version that its user saw, stands in the audit with what was
 * there before and after, failed ones too, and leaves a way back where there is one.
 *
 * A way back is checked as well: it applies to what the change left, and refuses once somebody else has
 * changed that. What is deleted is kept for it up to `undoBytesMax`; ephemeral nodes do not come back.
 */

import {
  type Acl,
  type CallOptions,
  type Client,
  type CreateMode,
  isZkError,
} from '../client/index.ts';
import { childOf, nameOf } from '../protocol/index.ts';
import { limits } from './api.ts';
import type { AuditLog, Noted, Undo } from './audit.ts';
import { ConsoleError } from './console-error.ts';
import { aclOf, aclView, statView } from './node-text.ts';
import { orNull } from './tree.ts';
import type {
  AclEntry,
  AuditState,
  ChangedView,
  DeletePreview,
  ImportView,
  StatView,
} from './views.ts';

/** What is kept of data in the audit's list itself; undo keeps all. */
const shownBytes = 16 * 1024;
const sampleMax = 20;
/** Nodes that undo of a delete puts back. */
const undoNodesMax = 1_000;

export interface By {
  readonly who: string;
  readonly call: CallOptions;
}

interface Kept {
  readonly path: string;
  readonly data: Buffer | null;
  readonly acl: readonly Acl[];
  readonly mode: 'persistent' | 'container';
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
        after: state(data, 0),
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
        before: state(before.data, before.stat.version),
        after: state(data, stat.version),
        // What was read is what was replaced only if nobody came between.
        ...(before.stat.version === version && { undo }),
      };
    });
  }

  async setAcl(
    input: { path: string; acl: readonly AclEntry[]; version: number; recursive: boolean },
    by: By,
  ): Promise<ChangedView> {
    const { path, version, recursive } = input;
    return this.#noting('acl', path, by, async () => {
      const before = await this.#client.getAcl(path, by.call);
      const acl = aclOf(input.acl, before.acl);
      const stat = await this.#client.setAcl(path, acl, { ...by.call, version });
      const count = recursive ? await this.#setAclBelow(path, acl, by.call) : 1;
      const undo = wayBack(path, 0, () =>
        this.#client.setAcl(path, before.acl, { version: stat.aversion }),
      );
      return {
        path,
        stat: statView(stat),
        count,
        before: { data: null, version: before.stat.aversion, acl: aclView(before.acl) },
        after: { data: null, version: stat.aversion, acl: aclView(acl) },
        ...(recursive ? {} : { undo }),
      };
    });
  }

  async preview(paths: readonly string[], call: CallOptions): Promise<DeletePreview> {
    const sample: string[] = [];
    let [count, ephemerals] = [0, 0];
    for (const path of topmost(paths)) {
      if (path === '/') throw new ConsoleError('BAD_INPUT', '/ can not be deleted');
      for await (const { path: at, stat } of this.#client.walk(path, call)) {
        count += 1;
        if (stat.ephemeralOwner > 0n) ephemerals += 1;
        if (sample.length < sampleMax) sample.push(at);
        if (count > limits.deleteMax) break;
      }
    }
    const confirm = paths.length === 1 ? nameOf(paths[0]!) : String(count);
    return { paths, count, ephemerals, confirm, sample, isTooMany: count > limits.deleteMax };
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
      if (preview.isTooMany) {
        throw new ConsoleError(
          'TOO_LARGE',
          `more than ${limits.deleteMax} nodes; use drover deleteall`,
        );
      }
      if (confirm !== preview.confirm) {
        throw new ConsoleError(
          'CONFLICT',
          `type ${preview.confirm} to delete ${preview.count} nodes`,
        );
      }
      if (preview.count > count) {
        const why = `there are ${preview.count} nodes by now, and not ${count}; look again`;
        throw new ConsoleError('CONFLICT', why);
      }
      const kept = await this.#keep(tops, preview.count, by.call);
      for (const path of tops) deleted += await this.#client.deleteRecursive(path, by.call);
      const first = kept?.[0];
      return {
        path: shown,
        stat: null,
        count: deleted,
        before: first === undefined ? null : state(first.data, null),
        after: null,
        ...(kept === null
          ? { isTooLarge: true }
          : { undo: wayBack(tops[0]!, bytesIn(kept), () => this.#putBack(kept)) }),
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
      for (const { path, data, acl } of fresh) {
        await this.#client.create(path, { ...by.call, data, parents: true, ...(acl && { acl }) });
      }
      for (const { path, data } of overwritten) {
        await this.#client.set(path, data, { ...by.call, version: there.get(path)!.version });
      }
      const count = fresh.length + overwritten.length;
      return { path: input.path, stat: null, count, before: null, after: null };
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

  async #setAclBelow(path: string, acl: readonly Acl[], call: CallOptions): Promise<number> {
    let count = 1;
    for await (const { path: at, depth } of this.#client.walk(path, call)) {
      if (depth === 0) continue;
      await this.#client.setAcl(at, acl, call).catch((error) => {
        if (!isZkError(error, 'NO_NODE')) throw error;
      });
      count += 1;
      if (count >= limits.deleteMax) break;
    }
    return count;
  }

  /** Null: too much to keep. */
  async #keep(paths: readonly string[], count: number, call: CallOptions): Promise<Kept[] | null> {
    if (count > undoNodesMax) return null;
    const kept: Kept[] = [];
    let bytes = 0;
    for (const path of paths) {
      for await (const { path: at, stat } of this.#client.walk(path, call)) {
        if (stat.ephemeralOwner > 0n) continue;
        bytes += stat.dataLength;
        if (bytes > limits.undoBytesMax) return null;
        const [node, acl] = await Promise.all([
          this.#client.get(at, call).catch(orNull),
          this.#client.getAcl(at, call).catch(orNull),
        ]);
        if (node === null || acl === null) return null; // not ours to read, so not ours to put back
        const mode = statView(stat).kind === 'container' ? 'container' : 'persistent';
        kept.push({ path: at, data: node.data, acl: acl.acl, mode });
      }
    }
    return kept;
  }

  async #putBack(kept: readonly Kept[]): Promise<void> {
    for (const { path, data, acl, mode } of kept) {
      await this.#client.create(path, { data, acl, mode });
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

function bytesIn(kept: readonly Kept[]): number {
  return kept.reduce((sum, { path, data }) => sum + path.length + (data?.length ?? 0), 0);
}

function state(data: Buffer | null, version: number | null): AuditState {
  const shown = data === null ? null : data.subarray(0, shownBytes).toString('base64');
  return { data: shown, version };
}

function bytesOf(data: Buffer | null): Buffer {
  return data ?? Buffer.alloc(0);
}

/** Without those that go with another. */
function topmost(paths: readonly string[]): string[] {
  const all = [...new Set(paths)];
  return all.filter((path) => !all.some((other) => path.startsWith(`${other}/`)));
}

/** Below the path and nowhere else: what is imported names no node outside. */
function joined(root: string, below: string): string {
  if (below === '') return root;
  const names = below.replace(/^\//, '').split('/');
  if (names.some((name) => name === '' || name === '.' || name === '..')) {
    throw new ConsoleError('BAD_INPUT', `${below}: a path below ${root} is wanted`);
  }
  return names.reduce(childOf, root);
}
