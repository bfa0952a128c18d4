/**
 * From what is asked to what will be done: a write is checked, and either becomes a txn or an error
 * code. The order of the checks is Apache's, since it decides which of two errors a client sees
 * (PrepRequestProcessor, `spec` 2.6).
 *
 * In: a request, who asks, and the tree as it will be. Out: a txn's body, or a code from the wire. A
 * txn's changes are put into the outlook; whoever prepared settles or undoes them.
 */

import {
  type Acl,
  anyVersion,
  createModes,
  type Id,
  openAcl,
  pathFault,
  permissions,
  type RequestOf,
  sequenceSuffix,
  type TxnBody,
  wireOf,
} from '../protocol/index.ts';
import {
  containerOwner,
  isTtl,
  limitsName,
  limitsPath,
  noNode,
  ownerKind,
  PlainPath,
  parseQuota,
  pathHash,
  quotaRoot,
  statsName,
  statsPath,
  type Tree,
  ttlOwner,
} from '../tree/index.ts';
import type { Auth } from './auth.ts';
import type { Limits } from './limits.ts';
import type { Change, Changes, Outlook } from './outlook.ts';

const err = {
  marshalling: wireOf('MARSHALLING_ERROR'),
  unimplemented: wireOf('UNIMPLEMENTED'),
  badArguments: wireOf('BAD_ARGUMENTS'),
  noNode: wireOf('NO_NODE'),
  noAuth: wireOf('NO_AUTH'),
  badVersion: wireOf('BAD_VERSION'),
  ephemeralParent: wireOf('NO_CHILDREN_FOR_EPHEMERALS'),
  nodeExists: wireOf('NODE_EXISTS'),
  notEmpty: wireOf('NOT_EMPTY'),
  expired: wireOf('SESSION_EXPIRED'),
  invalidAcl: wireOf('INVALID_ACL'),
  reconfigDisabled: wireOf('RECONFIG_DISABLED'),
  quotaExceeded: wireOf('QUOTA_EXCEEDED'),
} as const;

export const modesByFlags = new Map(Object.values(createModes).map((mode) => [mode.flags, mode]));

const system = '/zookeeper';
const belowQuotas = `${quotaRoot}/`;
const usageEnd = `/${statsName}`;
const limitsEnd = `/${limitsName}`;

/**
 * Limits that are no path's. Apache takes the length of `/zookeeper/quota` off what is above them, wherever in
 * `/zookeeper` they are deleted, and stops for good where that leaves no name.
 */
function areLimitsOfNothing(path: string): boolean {
  const above = path.slice(0, -limitsEnd.length);
  if (!path.endsWith(limitsEnd) || !above.startsWith(system)) return false;
  return /^[ /]*$/.test(above.slice(quotaRoot.length));
}

/** Who asks. */
export interface Asker {
  readonly sessionId: bigint;
  /** Its session is being closed, so that whatever else it asks comes too late. */
  readonly sessionClosing: boolean;
  readonly ids: readonly Id[];
}

export type CreateOp = 'create' | 'create2' | 'createContainer' | 'createTTL';
type CreateRequest = RequestOf<'create'> & { readonly ttl?: bigint };

/** What would stand below `path`, against what may. */
export interface OverQuota {
  readonly path: string;
  readonly what: 'count' | 'bytes';
  readonly sum: bigint;
  readonly limit: bigint;
  /** A soft limit is told of, and refuses nothing. */
  readonly isHard: boolean;
}

export interface PrepareOptions {
  readonly enforceQuota: boolean;
  readonly overQuota?: (over: OverQuota) => void;
  readonly reconfigEnabled: boolean;
  readonly limits: Limits;
}

const special = new Set(['/', '/zookeeper', '/zookeeper/quota', '/zookeeper/config']);

export class Prepare {
  readonly #tree: Tree;
  readonly #outlook: Outlook;
  readonly #auth: Auth;
  readonly #options: PrepareOptions;
  readonly #plain = new PlainPath();
  /** Of the last create: many follow each other below one parent, and the same string is found quicker. */
  #lastParent = '/';

  constructor(tree: Tree, outlook: Outlook, auth: Auth, options: PrepareOptions) {
    this.#tree = tree;
    this.#outlook = outlook;
    this.#auth = auth;
    this.#options = options;
  }

  get limits(): Limits {
    return this.#options.limits;
  }

  create(op: CreateOp, request: CreateRequest, asker: Asker, changes: Changes): TxnBody | number {
    const { data, flags, ttl = -1n } = request;
    const mode = modesByFlags.get(flags as 0);
    if (mode === undefined) return err.badArguments;
    if (mode.ttl && !this.#tree.extendedTypes) return err.unimplemented;
    if (mode.ttl ? !isTtl(ttl) : ttl >= 0n) return err.badArguments;
    // Apache would log a txn that its own tree then chokes on.
    if (op === 'createTTL' && !mode.ttl) return err.badArguments;
    if (asker.sessionClosing) return err.expired;
    let { path } = request;
    const plain = this.#plain;
    const isPlain = plain.read(path);
    const slash = isPlain ? plain.slash : path.lastIndexOf('/');
    if (!isPlain && (slash === -1 || path.includes('\0'))) return err.badArguments;
    const acl = this.#auth.fixUp(request.acl, asker.ids, this.limits.aclEntriesMax);
    if (acl === null) return err.invalidAcl;
    const parentPath = this.#parentPath(path, slash);
    const parent = this.#outlook.get(parentPath, isPlain ? plain.parentHash : undefined);
    if (parent === undefined) return err.noNode;
    if (!this.#auth.permits(parent.acl, permissions.create, asker.ids)) return err.noAuth;
    if (mode.sequential) path += sequenceSuffix(parent.cversion);
    if (!isPlain && pathFault(path) !== null) return err.badArguments;
    const hash = isPlain && !mode.sequential ? plain.hash : pathHash(path);
    if (this.#outlook.get(path, hash) !== undefined) return err.nodeExists;
    if (ownerKind(parent.owner, this.#tree.extendedTypes) === 'session') return err.ephemeralParent;
    if (path.startsWith(system) && areLimitsOfNothing(path)) return err.badArguments;
    const textFault = this.#quotaTextFault(path, data);
    if (textFault !== 0) return textFault;
    const bytes = data === null ? 0 : data.length;
    const quotaFault = this.#quotaFault(path, bytes, 1);
    if (quotaFault !== 0) return quotaFault;
    if (this.#overLimits(path, parent, acl, mode.ephemeral ? asker.sessionId : 0n)) {
      return err.quotaExceeded;
    }
    if (this.#overTxnBytes(path, bytes, acl)) return err.quotaExceeded;
    const parentCVersion = (parent.cversion + 1) | 0;
    const body = createTxn(op, path, data, kept(acl), mode.ephemeral, parentCVersion, ttl);
    // Until it is applied the flags say what it is, then the op does: a container that is asked for with
    // the flag of an ephemeral node can have no children in its own multi, and can behind it.
    let owner = mode.ephemeral ? asker.sessionId : 0n;
    if (mode.container) owner = containerOwner;
    else if (mode.ttl) owner = ttlOwner(ttl);
    const landedOwner = landedOwnerOf(op, mode.ephemeral ? asker.sessionId : 0n, ttl);
    this.#outlook.create(changes, parent, path, hash, data, acl, owner, landedOwner);
    return body;
  }

  /** What stands before the slash; the root for the first. */
  #parentPath(path: string, slash: number): string {
    const last = this.#lastParent;
    if (slash === last.length && path.startsWith(last)) return last;
    this.#lastParent = slash === 0 ? '/' : path.slice(0, slash);
    return this.#lastParent;
  }

  delete(request: RequestOf<'delete'>, asker: Asker, changes: Changes): TxnBody | number {
    const { path, version } = request;
    if (asker.sessionClosing) return err.expired;
    const parentPath = deletableParent(path);
    if (parentPath === null) return err.badArguments;
    const parent = this.#outlook.get(parentPath);
    if (parent === undefined) return err.noNode;
    if (!this.#auth.permits(parent.acl, permissions.delete, asker.ids)) return err.noAuth;
    const node = this.#outlook.get(path);
    if (node === undefined) return err.noNode;
    if (version !== anyVersion && version !== node.version) return err.badVersion;
    if (node.childCount > 0) return err.notEmpty;
    this.#outlook.delete(changes, parent, node);
    return { type: 'delete', txn: { path } };
  }

  /**
   * Deletes an empty container, or a node whose time to live is over. The reaper asks for it as the super
   * user. A connection may send the op as well, and needs the same permission as for a delete.
   */
  deleteContainer(path: string, asker: Asker, changes: Changes): TxnBody | number {
    const parentPath = deletableParent(path);
    if (parentPath === null) return err.badArguments;
    const parent = this.#outlook.get(parentPath);
    if (parent === undefined) return err.noNode;
    if (!this.#auth.permits(parent.acl, permissions.delete, asker.ids)) return err.noAuth;
    const node = this.#outlook.get(path);
    if (node === undefined) return err.noNode;
    if (node.childCount > 0) return err.notEmpty;
    if (ownerKind(node.owner, this.#tree.extendedTypes) === 'session') return err.badVersion;
    this.#outlook.delete(changes, parent, node);
    return { type: 'deleteContainer', txn: { path } };
  }

  setData(request: RequestOf<'setData'>, asker: Asker, changes: Changes): TxnBody | number {
    const { path, data, version } = request;
    if (asker.sessionClosing) return err.expired;
    const node = this.#outlook.get(path);
    // A node that is there has a legal path, except that the root is found by "" too.
    if (node === undefined || path === '') return pathFault(path) ? err.badArguments : err.noNode;
    if (!this.#auth.permits(node.acl, permissions.write, asker.ids)) return err.noAuth;
    const textFault = this.#quotaTextFault(path, data);
    if (textFault !== 0) return textFault;
    const bytes = data === null ? 0 : data.length;
    const quotaFault = this.#quotaFault(path, bytes - node.dataBytes, 0);
    if (quotaFault !== 0) return quotaFault;
    if (version !== anyVersion && version !== node.version) return err.badVersion;
    if (bytes > node.dataBytes && !this.#tree.nodes.hasRoom) return err.quotaExceeded;
    if (this.#overTxnBytes(path, bytes, openAcl)) return err.quotaExceeded;
    const next = (node.version + 1) | 0;
    this.#outlook.setData(changes, node, data, next);
    return { type: 'setData', txn: { path, data, version: next } };
  }

  setACL(request: RequestOf<'setACL'>, asker: Asker, changes: Changes): TxnBody | number {
    const { path, version } = request;
    if (asker.sessionClosing) return err.expired;
    if (pathFault(path) !== null) return err.badArguments;
    const acl = this.#auth.fixUp(request.acl, asker.ids, this.limits.aclEntriesMax);
    if (acl === null) return err.invalidAcl;
    const node = this.#outlook.get(path);
    if (node === undefined) return err.noNode;
    if (!this.#auth.permits(node.acl, permissions.admin, asker.ids)) return err.noAuth;
    if (version !== anyVersion && version !== node.aversion) return err.badVersion;
    if (this.#overAclLimits(acl) || this.#overTxnBytes(path, 0, acl)) return err.quotaExceeded;
    const next = (node.aversion + 1) | 0;
    this.#outlook.setAcl(changes, node, acl, next);
    return { type: 'setACL', txn: { path, acl: kept(acl), version: next } };
  }

  check(request: RequestOf<'check'>, asker: Asker): TxnBody | number {
    const { path, version } = request;
    if (asker.sessionClosing) return err.expired;
    if (pathFault(path) !== null) return err.badArguments;
    const node = this.#outlook.get(path);
    if (node === undefined) return err.noNode;
    if (!this.#auth.permits(node.acl, permissions.read, asker.ids)) return err.noAuth;
    if (version !== anyVersion && version !== node.version) return err.badVersion;
    return { type: 'check', txn: { path, version: (node.version + 1) | 0 } };
  }

  /** One server can't be reconfigured: what a standalone Apache says to it. */
  reconfig(asker: Asker): number {
    if (!this.#options.reconfigEnabled) return err.reconfigDisabled;
    return asker.sessionClosing ? err.expired : err.unimplemented;
  }

  closeSession(sessionId: bigint, changes: Changes): TxnBody {
    const paths2Delete = this.#outlook.ephemeralsOf(sessionId);
    for (const path of paths2Delete) {
      const slash = path.lastIndexOf('/');
      const parent = this.#outlook.get(slash <= 0 ? '/' : path.slice(0, slash));
      const node = this.#outlook.get(path);
      if (parent !== undefined && node !== undefined) this.#outlook.delete(changes, parent, node);
    }
    return { type: 'closeSession', txn: { paths2Delete } };
  }

  /**
   * 0, or why the hard limits forbid it; a soft one counts where there is no hard one. Usage is that of the tree as it is, without what is under
   * way: so does Apache. A limit that can't be read is an error of its own there, and so here.
   */
  #quotaFault(path: string, bytesMore: number, countMore: number): number {
    if (!this.#options.enforceQuota) return 0;
    const quota = this.#tree.quotas.above(path);
    if (quota === undefined) return 0;
    const { nodes } = this.#tree;
    const limitsNode = this.#tree.find(limitsPath(quota));
    if (limitsNode === noNode) return 0;
    const limits = parseQuota(nodes.dataOf(limitsNode));
    if (limits === null) return err.marshalling;
    const { count, bytes, countHardLimit, byteHardLimit } = limits;
    const checksCount = countMore !== 0 && (count > -1 || countHardLimit > -1);
    const checksBytes = bytesMore !== 0 && (bytes > -1 || byteHardLimit > -1);
    if (!checksCount && !checksBytes) return 0;
    const usageNode = this.#tree.find(statsPath(quota));
    if (usageNode === noNode) return 0;
    const usage = parseQuota(nodes.dataOf(usageNode));
    if (usage === null) return err.marshalling;
    const isOver = (what: 'count' | 'bytes', more: number, hard: bigint, soft: bigint): boolean => {
      const sum = BigInt.asIntN(64, usage[what] + BigInt(more)); // turns over, as Java's
      const isHard = hard > -1;
      const limit = isHard ? hard : soft;
      if (sum <= limit) return false;
      this.#options.overQuota?.({ path: quota, what, sum, limit, isHard });
      return isHard;
    };
    const isRefused =
      (checksCount && isOver('count', countMore, countHardLimit, count)) ||
      (checksBytes && isOver('bytes', bytesMore, byteHardLimit, bytes));
    return isRefused ? err.quotaExceeded : 0;
  }

  /**
   * 0, or why it can't be the text of a quota. Usage that StatsTrack would throw at Apache takes, stops for
   * good at the next change below that quota, and could not replay a log that holds it.
   */
  #quotaTextFault(path: string, data: Buffer | null): number {
    if (!path.startsWith(belowQuotas)) return 0;
    const isUsage = path.endsWith(usageEnd);
    if (!isUsage && !path.endsWith(limitsEnd)) return 0;
    if (data !== null && data.length > this.limits.quotaTextBytesMax) return err.quotaExceeded;
    return isUsage && parseQuota(data) === null ? err.badArguments : 0;
  }

  #overLimits(path: string, parent: Change, acl: Change['acl'], session: bigint): boolean {
    const { limits } = this.#options;
    if (path.length > limits.pathDepthMax || path.length * 3 > limits.pathBytesMax) {
      if (Buffer.byteLength(path) > limits.pathBytesMax) return true;
      if (path.split('/').length - 1 > limits.pathDepthMax) return true;
    }
    if (!this.#tree.nodes.hasRoom || parent.childCount >= limits.childrenPerNodeMax) return true;
    if (session !== 0n && this.#overEphemerals(path, session)) return true;
    return this.#overAclLimits(acl);
  }

  #overEphemerals(path: string, session: bigint): boolean {
    const { ephemeralsPerSessionMax, ephemeralPathBytesMax } = this.#options.limits;
    const { count, pathBytes } = this.#outlook.ephemeralUse(session);
    // Each path stands in the closing txn behind its length, an int.
    const bytes = pathBytes + Buffer.byteLength(path) + 4 * (count + 1);
    return count >= ephemeralsPerSessionMax || bytes > ephemeralPathBytesMax;
  }

  #overAclLimits(acl: Change['acl']): boolean {
    const { aclEntriesMax, distinctAclsMax } = this.#options.limits;
    if (acl.length > aclEntriesMax) return true;
    const { acls } = this.#tree;
    return acls.size >= distinctAclsMax && !acls.has(acl);
  }

  /**
   * Whether the log could not hold it, which would be the end of the server. A frame may be larger than
   * a txn (`jute.maxbuffer`), and an ACL in a txn larger than in its frame: `auth` becomes every id of the
   * link, and a byte that is no UTF-8 becomes three.
   */
  #overTxnBytes(path: string, dataBytes: number, acl: readonly Acl[]): boolean {
    const { txnBytesMax } = this.#options.limits;
    let units = path.length;
    let fixed = dataBytes;
    for (const { id } of acl) {
      units += id.scheme.length + id.id.length;
      fixed += aclEntryBytes;
    }
    if (fixed + 3 * units <= txnBytesMax) return false;
    let bytes = fixed + Buffer.byteLength(path);
    for (const { id } of acl) bytes += Buffer.byteLength(id.scheme) + Buffer.byteLength(id.id);
    return bytes > txnBytesMax;
  }
}

/** Of an ACL's entry without its texts: permissions and two lengths. */
const aclEntryBytes = 12;

/** Not copied: by its identity the open ACL is known at once, all the way to the tree. */
const kept = (acl: readonly Acl[]): Acl[] => acl as Acl[];

/** As `Tree.apply` will have it, whatever the flags said. */
function landedOwnerOf(op: CreateOp, session: bigint, ttl: bigint): bigint {
  if (op === 'createContainer') return containerOwner;
  return op === 'createTTL' ? ttlOwner(ttl) : session;
}

function createTxn(
  op: CreateOp,
  path: string,
  data: Buffer | null,
  acl: Acl[],
  ephemeral: boolean,
  parentCVersion: number,
  ttl: bigint,
): TxnBody {
  switch (op) {
    case 'create':
    case 'create2':
      return { type: op, txn: { path, data, acl, ephemeral, parentCVersion } };
    case 'createContainer':
      return { type: op, txn: { path, data, acl, parentCVersion } };
    case 'createTTL':
      return { type: op, txn: { path, data, acl, parentCVersion, ttl } };
  }
}

function deletableParent(path: string): string | null {
  const slash = path.lastIndexOf('/');
  if (slash === -1 || path.includes('\0') || special.has(path)) return null;
  if (path.startsWith(system) && areLimitsOfNothing(path)) return null;
  return slash === 0 ? '/' : path.slice(0, slash);
}
