/**
 * What a command writes, noted while it writes: which nodes, what stood there before and what stands
 * there now. The journal (`journal.ts`) keeps it, and the console's audit shows it.
 *
 * A look at what is about to change goes out just before the change, on the same session: requests are
 * answered in order, so it costs no wait. A multi may change a thousand large nodes: there the looks come
 * first, a few at a time, and no further than the notes have room (`looks.ts`). A look is not part of the
 * change: where somebody else came between, the versions tell, and what stood there is unknown. Data that
 * not everybody may read is not noted, nor are ACLs with hashes of passwords. Beyond `fullMax` writes or
 * `bytesMax` of data and ACLs the rest is counted only.
 */

import {
  type Acl,
  type CallOptions,
  Client,
  type ClientOptions,
  type Created,
  type CreateOptions,
  type DataInput,
  isZkError,
  type MultiCreated,
  type MultiOp,
  type ReconfigOptions,
  type ResultsOf,
  type StatView,
  type VersionOptions,
} from '../client/index.ts';
import { hasRoom, look, lookAtMany, type Room } from './looks.ts';
import {
  aclNote,
  createdNote,
  modeOf,
  type NodeNote,
  seen,
  setNotes,
  sizeOf,
} from './node-note.ts';

const fullMax = 1_000;
const bytesMax = 512 * 1024;

export interface WriteNote {
  readonly op: 'create' | 'set' | 'delete' | 'setAcl' | 'reconfig';
  /** As the server knows it: the chroot stands before it. */
  readonly path: string;
  /** Null: it was not there. Left out: unknown. */
  readonly before?: NodeNote | null;
  readonly after?: NodeNote | null;
  /** The reply was lost: it may or may not have happened. */
  readonly isUnsure?: true;
}

/** Of one command. */
export class WriteNotes {
  readonly writes: WriteNote[] = [];
  count = 0;
  #bytes = 0;

  get isFull(): boolean {
    return !hasRoom(this.room);
  }

  /** What may still be noted, in writes and in bytes. The write that goes beyond the bytes is the last. */
  get room(): Room {
    return { writes: fullMax - this.writes.length, bytes: bytesMax - this.#bytes };
  }

  add(note: WriteNote): void {
    this.count += 1;
    if (this.isFull) return;
    this.writes.push(note);
    this.#bytes += note.path.length + sizeOf(note.before) + sizeOf(note.after);
  }
}

/** A client that notes what is written through it, for whichever command runs now. */
export class NotingClient extends Client {
  readonly #notes: () => WriteNotes | undefined;

  constructor(servers: string, options: ClientOptions, notes: () => WriteNotes | undefined) {
    super(servers, options);
    this.#notes = notes;
  }

  override async create(
    path: string,
    data?: DataInput,
    options: CreateOptions = {},
  ): Promise<Created> {
    if (options.parents) return super.create(path, data, options); // comes back here for each that it makes
    const created = await this.#noting('create', path, () => super.create(path, data, options));
    const after = createdNote(data, options, created.stat);
    this.#add({ op: 'create', path: created.path, before: null, after });
    return created;
  }

  override async set(path: string, data: DataInput, options?: VersionOptions): Promise<StatView> {
    const look = this.#look(path);
    const stat = await this.#noting('set', path, () => super.set(path, data, options));
    const before = await look;
    this.#add({ op: 'set', path, ...setNotes(before, data, stat) });
    return stat;
  }

  override async delete(path: string, options: VersionOptions = {}): Promise<void> {
    const look = this.#look(path);
    await this.#noting('delete', path, () => super.delete(path, options));
    this.#add({ op: 'delete', path, ...seen('before', await look), after: null });
  }

  override async setAcl(
    path: string,
    acl: readonly Acl[],
    options: VersionOptions = {},
  ): Promise<StatView> {
    const look = this.#look(path);
    const stat = await this.#noting('setAcl', path, () => super.setAcl(path, acl, options));
    const before = await look;
    const isNext = before?.aclVersion === stat.aversion - 1;
    const after = { ...before, version: stat.version, mode: modeOf(stat), ...aclNote(acl) };
    this.#add({
      op: 'setAcl',
      path,
      ...(isNext && seen('before', before)),
      after: { ...after, aclVersion: stat.aversion },
    });
    return stat;
  }

  override async multi<const T extends readonly MultiOp[]>(
    ops: T,
    options: CallOptions = {},
  ): Promise<ResultsOf<T>> {
    const list: readonly MultiOp[] = Array.isArray(ops) ? ops : [];
    const looks = await this.#lookAt(list, options);
    let results: ResultsOf<T>;
    try {
      results = await super.multi(ops, options);
    } catch (error) {
      if (isUnsure(error)) {
        for (const { op, path } of list) {
          if (op !== 'check') this.#add({ op, path, isUnsure: true });
        }
      }
      throw error;
    }
    for (const [i, op] of list.entries()) {
      if (op.op === 'check') continue;
      const result: unknown = results[i];
      const before = looks.get(i);
      if (op.op === 'create') {
        const { path, stat } = result as MultiCreated;
        this.#add({ op: 'create', path, before: null, after: createdNote(op.data, op, stat) });
      } else if (op.op === 'set') {
        this.#add({ op: 'set', path: op.path, ...setNotes(before, op.data, result as StatView) });
      } else this.#add({ op: 'delete', path: op.path, ...seen('before', before), after: null });
    }
    return results;
  }

  override async reconfig(options: ReconfigOptions) {
    const config = await super.reconfig(options);
    const notes = this.#notes();
    notes?.add({ op: 'reconfig', path: '/zookeeper/config' }); // outside any chroot
    return config;
  }

  async #noting<T>(op: WriteNote['op'], path: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (isUnsure(error)) this.#add({ op, path, isUnsure: true });
      throw error;
    }
  }

  #add(note: WriteNote): void {
    const path = note.path === '/' ? this.chroot || '/' : this.chroot + note.path;
    this.#notes()?.add({ ...note, path });
  }

  /** Sent now, before whatever is sent next. Undefined: nobody notes, or it is not ours to know. */
  async #look(path: string): Promise<NodeNote | undefined> {
    const notes = this.#notes();
    return notes === undefined || notes.isFull ? undefined : look(this, path);
  }

  /** By where in the multi it is. */
  async #lookAt(
    ops: readonly MultiOp[],
    { signal }: CallOptions,
  ): Promise<ReadonlyMap<number, NodeNote | undefined>> {
    const notes = this.#notes();
    if (notes === undefined) return new Map();
    const changed = [...ops.keys()].filter((i) => /^(set|delete)$/.test(ops[i]!.op));
    const paths = changed.map((i) => ops[i]!.path);
    const found = await lookAtMany(this, paths, notes.room, signal ? { signal } : {});
    return new Map(found.map((note, at) => [changed[at]!, note]));
  }
}

function isUnsure(error: unknown): boolean {
  return isZkError(error) && error.outcomeUnknown;
}
