/**
 * The tree as it must be: a second, plain implementation of what the ops do, told by nobody but the
 * clients' own requests in the order of their zxids.
 *
 * Answers are exact, errors included, but for times, which only the server knows: those are learned when
 * first seen, and must never change afterwards (checker.ts).
 */

import { wireOf, type ZkErrorCode } from '../../src/protocol/index.ts';
import type { Answer, Asked, SeenStat } from './history.ts';

export interface ModelNode {
  data: string;
  readonly czxid: number;
  mzxid: number;
  pzxid: number;
  version: number;
  /** Children ever made: the next sequence number. */
  made: number;
  readonly owner: string;
  readonly children: Set<string>;
  /** As the server told them first; ctime goes with czxid, mtime with mzxid. */
  ctime: number | undefined;
  mtime: number | undefined;
}

const fail = (code: ZkErrorCode): Answer => ({ err: wireOf(code) });

export class Model {
  readonly nodes = new Map<string, ModelNode>([['/', fresh('', 0, '0')]]);
  readonly #owned = new Map<string, Set<string>>();
  #undo: (() => void)[] = [];

  /** Does it at this zxid, or not at all, and says what the reply must be. */
  write(session: string, asked: Asked, zxid: number): Answer {
    this.#undo = [];
    if (asked.kind === 'closeSession') {
      this.endSession(session, zxid);
      return { err: 0 };
    }
    if (asked.kind !== 'multi') return this.#one(session, asked, zxid);
    const parts: Answer[] = [];
    for (const part of asked.parts) {
      const answer = this.#one(session, part, zxid);
      parts.push(answer);
      if (answer.err === 0) continue;
      for (const undo of this.#undo.toReversed()) undo();
      // Those before the one that failed are told that nothing is wrong with them, those behind that all is off.
      const before = parts.slice(0, -1).map(() => ({ err: 0 }));
      const behind = asked.parts.slice(parts.length).map(() => fail('RUNTIME_INCONSISTENCY'));
      return { err: 0, parts: [...before, answer, ...behind] };
    }
    return { err: 0, parts };
  }

  read(asked: Asked): Answer {
    if (!('path' in asked)) throw new Error(`${asked.kind} reads nothing`);
    const node = this.nodes.get(asked.path);
    if (node === undefined) return fail('NO_NODE');
    const stat = statOf(node);
    if (asked.kind === 'getData') return { err: 0, data: node.data, stat };
    if (asked.kind === 'exists') return { err: 0, stat };
    return { err: 0, children: [...node.children].sort(), stat };
  }

  endSession(session: string, zxid: number): void {
    for (const path of this.#owned.get(session) ?? []) this.#remove(path, zxid);
    this.#owned.delete(session);
  }

  #one(session: string, asked: Asked, zxid: number): Answer {
    switch (asked.kind) {
      case 'create':
      case 'create2':
        return this.#create(session, asked, zxid);
      case 'setData':
        return this.#setData(asked, zxid);
      case 'delete':
        return this.#delete(asked, zxid);
      case 'check': {
        const node = this.nodes.get(asked.path);
        if (node === undefined) return fail('NO_NODE');
        return isVersion(node, asked.version) ? { err: 0 } : fail('BAD_VERSION');
      }
      default:
        throw new Error(`${asked.kind} writes nothing`);
    }
  }

  #create(
    session: string,
    asked: Extract<Asked, { kind: 'create' | 'create2' }>,
    zxid: number,
  ): Answer {
    const parent = this.nodes.get(parentOf(asked.path));
    if (parent === undefined) return fail('NO_NODE');
    const isSequential = asked.mode.endsWith('Sequential');
    const path = isSequential ? asked.path + `${parent.made}`.padStart(10, '0') : asked.path;
    if (this.nodes.has(path)) return fail('NODE_EXISTS');
    if (parent.owner !== '0') return fail('NO_CHILDREN_FOR_EPHEMERALS');
    const owner = asked.mode.startsWith('ephemeral') ? session : '0';
    const node = fresh(asked.data, zxid, owner);
    const { pzxid } = parent;
    this.nodes.set(path, node);
    parent.children.add(nameOf(path));
    parent.made += 1;
    parent.pzxid = zxid;
    if (owner !== '0') this.#ownedBy(owner).add(path);
    this.#undo.push(() => {
      this.nodes.delete(path);
      parent.children.delete(nameOf(path));
      parent.made -= 1;
      parent.pzxid = pzxid;
      if (owner !== '0') this.#ownedBy(owner).delete(path);
    });
    return asked.kind === 'create' ? { err: 0, path } : { err: 0, path, stat: statOf(node) };
  }

  #setData(asked: Extract<Asked, { kind: 'setData' }>, zxid: number): Answer {
    const node = this.nodes.get(asked.path);
    if (node === undefined) return fail('NO_NODE');
    if (!isVersion(node, asked.version)) return fail('BAD_VERSION');
    const { data, version, mzxid, mtime } = node;
    Object.assign(node, { data: asked.data, version: version + 1, mzxid: zxid, mtime: undefined });
    this.#undo.push(() => Object.assign(node, { data, version, mzxid, mtime }));
    return { err: 0, stat: statOf(node) };
  }

  #delete(asked: Extract<Asked, { kind: 'delete' | 'check' }>, zxid: number): Answer {
    const node = this.nodes.get(asked.path);
    if (node === undefined) return fail('NO_NODE');
    if (!isVersion(node, asked.version)) return fail('BAD_VERSION');
    if (node.children.size > 0) return fail('NOT_EMPTY');
    this.#remove(asked.path, zxid);
    return { err: 0 };
  }

  #remove(path: string, zxid: number): void {
    const node = this.nodes.get(path)!;
    const parent = this.nodes.get(parentOf(path))!;
    const { pzxid } = parent;
    this.nodes.delete(path);
    parent.children.delete(nameOf(path));
    parent.pzxid = zxid;
    this.#owned.get(node.owner)?.delete(path);
    this.#undo.push(() => {
      this.nodes.set(path, node);
      parent.children.add(nameOf(path));
      parent.pzxid = pzxid;
      if (node.owner !== '0') this.#ownedBy(node.owner).add(path);
    });
  }

  #ownedBy(session: string): Set<string> {
    const owned = this.#owned.get(session) ?? new Set();
    this.#owned.set(session, owned);
    return owned;
  }
}

function fresh(data: string, zxid: number, owner: string): ModelNode {
  const stat = { czxid: zxid, mzxid: zxid, pzxid: zxid, version: 0, made: 0 };
  return { data, ...stat, owner, children: new Set(), ctime: undefined, mtime: undefined };
}

function isVersion(node: ModelNode, version: number): boolean {
  return version === -1 || version === node.version;
}

/** Times are -1 here: nobody but the server knows them. */
export function statOf(node: ModelNode): SeenStat {
  return {
    czxid: node.czxid,
    mzxid: node.mzxid,
    pzxid: node.pzxid,
    version: node.version,
    // Clients are shown changes, made and removed, where the tree counts what was made alone.
    cversion: 2 * node.made - node.children.size,
    aversion: 0,
    ephemeralOwner: node.owner,
    dataLength: node.data.length,
    numChildren: node.children.size,
    ctime: -1,
    mtime: -1,
  };
}

export function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/';
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
