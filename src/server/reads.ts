/**
 * The ops that change nothing: from a request's bytes straight to a reply's. The order of checks is
 * that of FinalRequestProcessor.
 *
 * In: a call. Out: a reply in the connection's writer and 0, or an error's number and nothing written.
 * A request that can't be read throws a ProtocolError, again before anything is written.
 */

import { ProtocolError, Reader, readInt, ustringOrNull } from '../jute/index.ts';
import {
  type Acl,
  GetACLResponse,
  MultiHeader,
  MultiRequest,
  multiParts,
  type OpName,
  ops,
  permissions,
  SetWatches,
  SetWatches2,
  specialXids,
  WhoAmIResponse,
  watcherTypes,
  wireOf,
} from '../protocol/index.ts';
import { noNode, type Tree } from '../tree/index.ts';
import type { Auth } from './auth.ts';
import type { Connection } from './connection.ts';
import type { Limits } from './limits.ts';
import type { ReadCall } from './read-call.ts';
import { beginReply, headerReply, recordReply, writeReadPart } from './replies.ts';
import { anyKind, watchBytes, watchKinds } from './watch-table.ts';
import { eventFrame, type Watches } from './watches.ts';

const err = {
  marshalling: wireOf('MARSHALLING_ERROR'),
  badArguments: wireOf('BAD_ARGUMENTS'),
  noNode: wireOf('NO_NODE'),
  noAuth: wireOf('NO_AUTH'),
  noWatcher: wireOf('NO_WATCHER'),
  quotaExceeded: wireOf('QUOTA_EXCEEDED'),
} as const;

export type ReadOp = Exclude<
  { [N in OpName]: (typeof ops)[N]['writes'] extends false ? N : never }[OpName],
  'auth' | 'sasl'
>;

type Handler = (call: ReadCall) => number;

/** Fewer nodes are counted as quickly as it is looked up how many they are. */
const countedMin = 1_000;

/** Behind a request's header, and the path's own length. */
const pathStart = 12;
/** What a reply takes that has neither data nor a list. */
const plainBytes = 128;
/** So many frames of the largest size are as much as a multiRead may be answered with. */
const multiReadFramesMax = 8;
/** A name of common length, twice. */
const childBytes = 64;

export class Reads {
  readonly #tree: Tree;
  readonly #watches: Watches;
  readonly #auth: Auth;
  readonly #limits: Limits;
  readonly #byCode: Handler[] = [];
  /** How many nodes are below others, as long as no nodes come or go. */
  readonly #counted = new Map<number, number>();
  #countedShape = -1;
  /**
   * Nodes, paths and watches that were looked at since somebody set this to 0. A read that looks at one counts
   * nothing: a chunk has no room for so many of them that they take long.
   */
  work = 0;

  constructor(tree: Tree, watches: Watches, auth: Auth, limits: Limits) {
    this.#tree = tree;
    this.#watches = watches;
    this.#auth = auth;
    this.#limits = limits;
    for (const [name, handler] of Object.entries(this.#handlers)) {
      this.#byCode[ops[name as ReadOp].code] = handler;
    }
  }

  /** An op without a handler does not compile. */
  readonly #handlers: { [N in ReadOp]: Handler } = {
    ping: (call) => this.#ping(call),
    exists: (call) => this.#exists(call),
    getData: (call) => this.#getData(call),
    getChildren: (call) => this.#getChildren(call, false),
    getChildren2: (call) => this.#getChildren(call, true),
    getACL: (call) => this.#getAcl(call),
    getAllChildrenNumber: (call) => this.#getAllChildrenNumber(call),
    getEphemerals: (call) => this.#getEphemerals(call),
    multiRead: (call) => this.#multiRead(call),
    sync: (call) => this.#sync(call),
    setWatches: (call) => this.#setWatches(call, { ...SetWatches.read(call.reader), ...none }),
    setWatches2: (call) => this.#setWatches(call, SetWatches2.read(call.reader)),
    addWatch: (call) => this.#addWatch(call),
    checkWatches: (call) => this.#checkOrRemove(call, false),
    removeWatches: (call) => this.#checkOrRemove(call, true),
    whoAmI: (call) => this.#whoAmI(call),
  };

  run(code: number, call: ReadCall): void {
    const fault = this.#byCode[code]!(call);
    if (fault !== 0) headerReply(call.connection.out, call.xid, this.#tree.lastZxid, fault);
  }

  /** About how long the reply to a request will be, rather more than less; found without making it. */
  replyBytes(request: Buffer, session: bigint): number {
    const code = readInt(request, 4);
    if (code === ops.multiRead.code) return this.#multiReadBytes(request);
    if (code === ops.getEphemerals.code) return 2 * this.#tree.ephemeralBytesOf(session);
    const isData = code === ops.getData.code;
    if (!isData && code !== ops.getChildren.code && code !== ops.getChildren2.code)
      return plainBytes;
    const pathEnd = request.length - 1; // behind the path is a byte that says whether to watch
    const isCut = pathEnd < pathStart;
    const node = isCut ? noNode : this.#tree.nodes.findBytes(request, pathStart, pathEnd);
    return this.#nodeReplyBytes(node, isData);
  }

  /** About how much work a request will be, rather more than less. */
  workOf(request: Buffer, session: bigint, replyBytes: number): number {
    const code = readInt(request, 4);
    if (code === ops.getEphemerals.code) return this.#tree.ephemeralsOf(session).size;
    if (code === ops.getAllChildrenNumber.code) return this.#tree.nodes.count;
    return code === ops.getData.code ? 1 : replyBytes / childBytes;
  }

  #nodeReplyBytes(node: number, isData: boolean): number {
    if (node === noNode) return plainBytes;
    const { nodes } = this.#tree;
    return plainBytes + (isData ? nodes.dataBytes(node) : childBytes * nodes.childCount(node));
  }

  /** No client takes more than a frame or two. */
  get #multiReadBytesMax(): number {
    const { frameBytesMax, outputBytesMax } = this.#limits;
    return Math.min(outputBytesMax, multiReadFramesMax * frameBytesMax);
  }

  #multiReadBytes(request: Buffer): number {
    try {
      let sum = 0;
      for (const { op, request: part } of MultiRequest.read(new Reader(request.subarray(8)))) {
        const { path } = part as { path: string };
        sum += this.#nodeReplyBytes(this.#tree.find(path), op === 'getData');
        if (sum > this.#multiReadBytesMax) return sum; // it will be refused
      }
      return sum;
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      return plainBytes; // which is what it will be told
    }
  }

  #ping({ connection }: ReadCall): number {
    headerReply(connection.out, specialXids.ping, this.#tree.lastZxid, 0);
    return 0;
  }

  /** 0, or why the node may not be read. */
  #fault(node: number, call: ReadCall, perms: number = permissions.read): number {
    if (node === noNode) return err.noNode;
    return this.#auth.permits(this.#tree.aclOf(node), perms, call.ids) ? 0 : err.noAuth;
  }

  /** 0, or why no more watches are taken. */
  #watchFault(connection: Connection, more: number, bytes: number): number {
    const { watchesPerConnectionMax, watchesMax } = this.#limits;
    if (
      this.#watches.countOf(connection) + more > watchesPerConnectionMax ||
      this.#watches.count + more > watchesMax
    ) {
      return err.quotaExceeded;
    }
    if (!this.#areTooLong(connection, bytes)) return 0;
    this.#watches.forgetSpent(connection);
    return this.#areTooLong(connection, bytes) ? err.quotaExceeded : 0;
  }

  #areTooLong(connection: Connection, bytes: number): boolean {
    const { watchBytesPerConnectionMax, watchBytesMax } = this.#limits;
    return (
      this.#watches.bytesOf(connection) + bytes > watchBytesPerConnectionMax ||
      this.#watches.bytes + bytes > watchBytesMax
    );
  }

  #getData(call: ReadCall): number {
    const { nodes } = this.#tree;
    call.target(nodes, true);
    const { node, connection } = call;
    const fault = this.#fault(node, call);
    if (fault !== 0) return fault;
    if (call.watch) {
      const { path } = call;
      const watchFault = this.#watchFault(connection, 1, watchBytes(path, oneShot));
      if (watchFault !== 0) return watchFault;
      this.#watches.data.add(path, connection, oneShot);
    }
    const writer = connection.out;
    const start = beginReply(writer, call.xid, this.#tree.lastZxid, 0);
    nodes.writeData(writer, node);
    writer.endFrame(start);
    return 0;
  }

  #exists(call: ReadCall): number {
    const { nodes } = this.#tree;
    call.target(nodes, true);
    const { node, connection } = call;
    if (node === noNode && call.pathHasNul) return err.badArguments;
    const fault = this.#fault(node, call);
    // Since 3.9.2 it needs READ. That the node is missing is an answer, and it can be waited for.
    if (fault === err.noAuth) return fault;
    if (call.watch) {
      const { path } = call;
      const watchFault = this.#watchFault(connection, 1, watchBytes(path, oneShot));
      if (watchFault !== 0) return watchFault;
      this.#watches.data.add(path, connection, oneShot);
    }
    if (fault !== 0) return fault;
    const writer = connection.out;
    const start = beginReply(writer, call.xid, this.#tree.lastZxid, 0);
    nodes.writeStat(writer, node);
    writer.endFrame(start);
    return 0;
  }

  #getChildren(call: ReadCall, withStat: boolean): number {
    const { nodes } = this.#tree;
    call.target(nodes, true);
    const { node, connection } = call;
    const fault = this.#fault(node, call);
    if (fault !== 0) return fault;
    if (call.watch) {
      const { path } = call;
      const watchFault = this.#watchFault(connection, 1, watchBytes(path, oneShot));
      if (watchFault !== 0) return watchFault;
      this.#watches.child.add(path, connection, oneShot);
    }
    const writer = connection.out;
    const start = beginReply(writer, call.xid, this.#tree.lastZxid, 0);
    nodes.writeChildren(writer, node);
    this.work += nodes.childCount(node);
    if (withStat) nodes.writeStat(writer, node);
    writer.endFrame(start);
    return 0;
  }

  #getAcl(call: ReadCall): number {
    const { nodes } = this.#tree;
    call.target(nodes, false);
    const fault = this.#fault(call.node, call, permissions.read | permissions.admin);
    if (fault !== 0) return fault;
    const acl = this.#tree.aclOf(call.node);
    const isAdmin = this.#auth.permits(acl, permissions.admin, call.ids);
    const writer = call.connection.out;
    const start = beginReply(writer, call.xid, this.#tree.lastZxid, 0);
    GetACLResponse.fields.acl.write(writer, isAdmin ? [...acl] : acl.map(withoutHash));
    nodes.writeStat(writer, call.node);
    writer.endFrame(start);
    return 0;
  }

  #getAllChildrenNumber(call: ReadCall): number {
    call.target(this.#tree.nodes, false);
    const fault = this.#fault(call.node, call);
    if (fault !== 0) return fault;
    // Apache counts the paths that begin with this one and a slash: behind nothing, the root's too.
    const totalNumber = this.#countBelow(call.node) + (call.path === '' ? 1 : 0);
    return this.#reply(call, 'getAllChildrenNumber', { totalNumber });
  }

  /** Nodes are walked through once, until some come or go: a chunk has room to ask for it thousands of times. */
  #countBelow(node: number): number {
    const { shape } = this.#tree.nodes;
    if (shape !== this.#countedShape) {
      this.#counted.clear();
      this.#countedShape = shape;
    }
    const known = this.#counted.get(node);
    if (known !== undefined) return known;
    const count = this.#tree.countBelow(node);
    this.work += count;
    if (count >= countedMin) this.#counted.set(node, count);
    return count;
  }

  #reply<N extends 'getAllChildrenNumber' | 'getEphemerals' | 'addWatch'>(
    call: ReadCall,
    op: N,
    value: Parameters<(typeof ops)[N]['response']['write']>[1],
  ): number {
    const type = ops[op].response as { write(writer: unknown, value: unknown): void };
    recordReply(call.connection.out, call.xid, this.#tree.lastZxid, type as never, value as never);
    return 0;
  }

  /** One's own, by a plain prefix of the text: `/a` finds `/ab` too. */
  #getEphemerals(call: ReadCall): number {
    const prefix = call.reader.ustringOrNull();
    const isAll = prefix === null || allEphemerals.test(prefix);
    const own = this.#tree.ephemeralsOf(call.connection.session!.id);
    this.work += own.size;
    const ephemerals: string[] = [];
    for (const path of own) if (isAll || path.startsWith(prefix)) ephemerals.push(path);
    return this.#reply(call, 'getEphemerals', { ephemerals });
  }

  /** Says the path back as it came, null included. */
  #sync(call: ReadCall): number {
    const path = call.reader.ustringOrNull();
    const writer = call.connection.out;
    const start = beginReply(writer, call.xid, this.#tree.lastZxid, 0);
    ustringOrNull.write(writer, path);
    writer.endFrame(start);
    return 0;
  }

  #whoAmI({ connection, xid, ids }: ReadCall): number {
    const clientInfo = ids.map((id) => ({ authScheme: id.scheme, user: this.#auth.user(id) }));
    recordReply(connection.out, xid, this.#tree.lastZxid, WhoAmIResponse, { clientInfo });
    return 0;
  }

  #multiRead(call: ReadCall): number {
    const parts = MultiRequest.read(call.reader);
    const isRead = ({ op }: (typeof parts)[number]) => op === 'getData' || op === 'getChildren';
    const reads = parts.filter(isRead);
    const isMixed = reads.length > 0 && reads.length < parts.length;
    if (isMixed) throw new ProtocolError('a multi reads or writes, not both');
    const { nodes } = this.#tree;
    const writer = call.connection.out;
    // To one that writes Apache has begun a list of results when it stumbles, and sends it.
    const fault = reads.length < parts.length ? err.marshalling : 0;
    const start = beginReply(writer, call.xid, this.#tree.lastZxid, fault);
    this.work += reads.length;
    for (const part of reads) {
      // A frame has room for the same large node tens of thousands of times: no memory has, for the reply.
      if (writer.length - start > this.#multiReadBytesMax) {
        writer.truncate(start);
        return err.quotaExceeded;
      }
      const node = this.#tree.find((part.request as { path: string }).path);
      // Apache loses the watch flag when it decodes a multi. So do we.
      writeReadPart(writer, multiParts[part.op].code, this.#fault(node, call), () => {
        if (part.op === 'getData') nodes.writeData(writer, node);
        else nodes.writeChildren(writer, node);
        if (part.op !== 'getData') this.work += nodes.childCount(node);
      });
    }
    MultiHeader.write(writer, { type: -1, done: true, err: -1 });
    writer.endFrame(start);
    return 0;
  }

  #addWatch(call: ReadCall): number {
    const { path, mode } = ops.addWatch.request.read(call.reader);
    if (mode !== 0 && mode !== 1) throw new ProtocolError(`no watch has mode ${mode}`);
    const entries = mode === 1 ? 1 : 2;
    const bytes = entries * watchBytes(path, mode === 1 ? recursive : persistent);
    const fault = this.#watchFault(call.connection, entries, bytes);
    if (fault !== 0) return fault;
    this.#watches.addPersistent(path, call.connection, mode === 1);
    return this.#reply(call, 'addWatch', { err: 0 });
  }

  #checkOrRemove({ connection, reader, xid }: ReadCall, remove: boolean): number {
    const { path, type } = ops.checkWatches.request.read(reader);
    const kinds = removable.get(type);
    if (kinds === undefined) throw new ProtocolError(`no watch is of type ${type}`);
    const { data, child } = this.#watches;
    const inChild = remove
      ? child.remove(path, connection, kinds.child)
      : child.has(path, connection, kinds.child);
    const inData = remove
      ? data.remove(path, connection, kinds.data)
      : data.has(path, connection, kinds.data);
    if (!inChild && !inData) return err.noWatcher;
    headerReply(connection.out, xid, this.#tree.lastZxid, 0);
    return 0;
  }

  /** After a reconnect: what was missed is told at once, the rest is set again. */
  #setWatches(call: ReadCall, asked: SetWatches2): number {
    const { connection, xid } = call;
    const { dataWatches, existWatches, childWatches } = asked;
    const { persistentWatches, persistentRecursiveWatches } = asked;
    const once = [...dataWatches, ...existWatches, ...childWatches];
    const bytesOf = (paths: readonly string[], kind: number) =>
      paths.reduce((sum, path) => sum + watchBytes(path, kind), 0);
    const more = once.length + persistentRecursiveWatches.length + 2 * persistentWatches.length;
    const fault = this.#watchFault(
      connection,
      more,
      bytesOf(once, oneShot) +
        bytesOf(persistentRecursiveWatches, recursive) +
        2 * bytesOf(persistentWatches, persistent),
    );
    if (fault !== 0) return fault;
    this.work += more;
    const since = Number(asked.relativeZxid);
    const { nodes } = this.#tree;
    const { data, child } = this.#watches;
    const tell = (type: Parameters<typeof eventFrame>[0], path: string) =>
      connection.deliver(eventFrame(type, path, -1));
    // A node that the connection may not read is passed over, as a read of it would be refused and set no
    // watch. A watch would tell too: checkWatches shows when it is spent.
    for (const path of dataWatches) {
      const node = this.#tree.find(path);
      const unreadable = this.#fault(node, call);
      if (unreadable === err.noNode) tell('deleted', path);
      else if (unreadable !== 0) continue;
      else if (nodes.mzxid(node) > since) tell('dataChanged', path);
      else data.add(path, connection, watchKinds.oneShot);
    }
    for (const path of existWatches) {
      const unreadable = this.#fault(this.#tree.find(path), call);
      if (unreadable === err.noNode) data.add(path, connection, watchKinds.oneShot);
      else if (unreadable === 0) tell('created', path);
    }
    for (const path of childWatches) {
      const node = this.#tree.find(path);
      const unreadable = this.#fault(node, call);
      if (unreadable === err.noNode) tell('deleted', path);
      else if (unreadable !== 0) continue;
      else if (nodes.pzxid(node) > since) tell('childrenChanged', path);
      else child.add(path, connection, watchKinds.oneShot);
    }
    for (const path of persistentWatches) this.#watches.addPersistent(path, connection, false);
    for (const path of persistentRecursiveWatches) {
      this.#watches.addPersistent(path, connection, true);
    }
    headerReply(connection.out, xid, this.#tree.lastZxid, 0);
    return 0;
  }
}

/** What Java's trim leaves nothing of, or a slash: it takes everything up to the space away, and nothing else. */
const allEphemerals = /^[\0- ]*(\/[\0- ]*)?$/;

const none = { persistentWatches: [], persistentRecursiveWatches: [] };

const { oneShot, persistent, recursive } = watchKinds;
/** Which kinds in which table a WatcherType means. */
const removable = new Map<number, { readonly data: number; readonly child: number }>([
  [watcherTypes.children, { data: 0, child: oneShot }],
  [watcherTypes.data, { data: oneShot, child: 0 }],
  [watcherTypes.any, { data: anyKind, child: anyKind }],
  [watcherTypes.persistent, { data: persistent, child: persistent }],
  [watcherTypes.persistentRecursive, { data: recursive, child: 0 }],
]);

/** CVE-2019-0201: who may not change the ACL does not see whose password has which hash. */
function withoutHash({ perms, id }: Acl): Acl {
  if (id.scheme !== 'digest') return { perms, id };
  return { perms, id: { scheme: id.scheme, id: id.id.replace(/:.*/g, ':x') } };
}
