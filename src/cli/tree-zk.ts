/**
 * A subtree on a server, as something to copy from and to copy to.
 *
 * Reading is level by level, many requests at once, and never holds more than a batch of data. It is
 * not a picture of one moment (backup.ts makes one). Writing never takes for granted what it read: each
 * change names the version it was decided on.
 *
 * A node whose ACL would keep us from making its children is made with one more entry, for our own
 * address alone, which goes away when the children are there, also when the copy is interrupted.
 */

import { isIPv4 } from 'node:net';
import { type Acl, type Client, isZkError, type StatView } from '../client/index.ts';
import { openAcl, permissions } from '../protocol/index.ts';
import { CommandError } from './exit-codes.ts';
import { escaped } from './output.ts';
import { requestBytes } from './request-bytes.ts';
import {
  isMasked,
  isOpen,
  isServersOwn,
  joined,
  modeOf,
  relativeTo,
  sameAcl,
  statRecord,
  type TreeNode,
} from './tree-node.ts';

/** Nodes that are read or written at once. */
export const batchNodes = 64;
/** How long an interrupted copy may take to put ACLs right. */
const tidyTimeoutMs = 10_000;

export interface ReadOptions {
  readonly signal?: AbortSignal | undefined;
  /** Leave ACLs alone: they need not be readable then. */
  readonly withoutAcl?: boolean;
  /** Called for a node that may not be read, which is left out then. Without it that is an error. */
  readonly onUnreadable?: ((path: string) => void) | undefined;
}

/** The path below the client's chroot is what decides whether it is the server's own. */
export async function* readTree(
  client: Client,
  root: string,
  options: ReadOptions = {},
): AsyncGenerator<TreeNode, void, undefined> {
  let batch: string[] = [];
  const { signal, onUnreadable } = options;
  const walking = { ...(signal && { signal }), ...(onUnreadable && { onUnreadable }) };
  for await (const { path } of client.walk(root, walking)) {
    if (path !== root && client.chroot === '' && isServersOwn(path)) continue;
    batch.push(path);
    if (batch.length < batchNodes) continue;
    yield* await readBatch(client, root, batch, options);
    batch = [];
  }
  yield* await readBatch(client, root, batch, options);
}

async function readBatch(
  client: Client,
  root: string,
  paths: readonly string[],
  options: ReadOptions,
): Promise<TreeNode[]> {
  const nodes = await Promise.all(paths.map((path) => readNode(client, root, path, options)));
  return nodes.filter((node) => node !== null).map(({ node }) => node);
}

/** Null: it is gone. */
export async function readNode(
  client: Client,
  root: string,
  path: string,
  { signal, withoutAcl = false, onUnreadable }: ReadOptions = {},
): Promise<{ readonly node: TreeNode; readonly stat: StatView } | null> {
  const call = signal ? { signal } : {};
  try {
    const [{ data, stat }, acl] = await Promise.all([
      client.get(path, call),
      withoutAcl ? undefined : client.getAcl(path, call).then((reply) => reply.acl),
    ]);
    const node: TreeNode = {
      path: relativeTo(root, path),
      data,
      acl,
      ...modeOf(stat.ephemeralOwner),
      stat: statRecord(stat),
      childCount: stat.numChildren,
    };
    return { node, stat };
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return null;
    if (!isZkError(error, 'NO_AUTH') || onUnreadable === undefined) throw error;
    onUnreadable(path);
    return null;
  }
}

export function refuseMasked(node: TreeNode, root: string): void {
  if (!isMasked(node.acl)) return;
  const path = escaped(joined(root, node.path));
  const message = `the server hides the ACL of ${path} from us, so it can't be kept; authenticate as somebody who may change it (--auth), or leave ACLs out with --no-acl`;
  throw new CommandError('refused', message);
}

export class ZkTarget {
  readonly client: Client;
  readonly root: string;
  readonly #signal: AbortSignal | undefined;
  /** Those whose final ACL waits for the children, parents first. */
  readonly #narrowLater: { readonly path: string; readonly acl: readonly Acl[] }[] = [];
  #own: Promise<Acl | undefined> | undefined;

  constructor(client: Client, root: string, signal?: AbortSignal) {
    this.client = client;
    this.root = root;
    this.#signal = signal;
  }

  async find(path: string, withoutAcl: boolean) {
    const full = joined(this.root, path);
    return readNode(this.client, this.root, full, { signal: this.#signal, withoutAcl });
  }

  async create(node: TreeNode): Promise<void> {
    const path = joined(this.root, node.path);
    const acl = await this.#aclFor(node);
    await this.client.create(path, node.data, {
      mode: node.mode === 'ephemeral' ? 'persistent' : node.mode,
      ...(node.mode === 'persistentTtl' && node.ttlMs !== undefined ? { ttlMs: node.ttlMs } : {}),
      ...(acl ? { acl } : {}),
      ...(node.path === '/' ? { parents: true } : {}),
      ...this.#call,
    });
    this.#remember(path, node, acl);
  }

  async set(node: TreeNode, stat: StatView): Promise<void> {
    const path = joined(this.root, node.path);
    await this.client.set(path, node.data, { version: stat.version, ...this.#call });
  }

  async setAcl(node: TreeNode, stat: StatView): Promise<void> {
    const path = joined(this.root, node.path);
    const acl = await this.#aclFor(node);
    if (acl === undefined) return;
    await this.client.setAcl(path, acl, { version: stat.aversion, ...this.#call });
    this.#remember(path, node, acl);
  }

  /** How long the longest of these requests about a node is. */
  async bytesOf(node: TreeNode, requests: readonly ('create' | 'set' | 'setAcl')[]) {
    const { data, ttlMs } = node;
    const path = this.client.chroot + joined(this.root, node.path);
    const acl = [...((await this.#aclFor(node)) ?? openAcl)];
    const lengths = requests.map((request) => {
      if (request === 'set') return requestBytes('setData', { path, data, version: 0 });
      if (request === 'setAcl') return requestBytes('setACL', { path, acl, version: 0 });
      const create = { path, data, acl, flags: 0 };
      if (node.mode !== 'persistentTtl') return requestBytes('create2', create);
      return requestBytes('createTTL', { ...create, ttl: BigInt(ttlMs ?? 0) });
    });
    return Math.max(...lengths);
  }

  /** Everything below the root but the server's own, parents first. */
  async *paths(): AsyncGenerator<{ readonly path: string; readonly isEphemeral: boolean }> {
    try {
      for await (const { path, stat } of this.client.walk(this.root, this.#call)) {
        if (this.client.chroot === '' && isServersOwn(path)) continue;
        const isEphemeral = modeOf(stat.ephemeralOwner).mode === 'ephemeral';
        yield { path: relativeTo(this.root, path), isEphemeral };
      }
    } catch (error) {
      if (!isZkError(error, 'NO_NODE')) throw error;
    }
  }

  /** False: somebody has put something below it meanwhile. */
  async remove(path: string): Promise<boolean> {
    try {
      await this.client.delete(joined(this.root, path), this.#call);
      return true;
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return true;
      if (isZkError(error, 'NOT_EMPTY')) return false;
      throw error;
    }
  }

  /** Takes our own entries out of the ACLs again. Called whether the copy went well or not. */
  async finish(): Promise<void> {
    const waiting = this.#narrowLater.splice(0).reverse();
    const signal = this.#signal?.aborted ? AbortSignal.timeout(tidyTimeoutMs) : this.#signal;
    for (let at = 0; at < waiting.length; at += batchNodes) {
      await Promise.all(
        waiting.slice(at, at + batchNodes).map(async ({ path, acl }) => {
          try {
            await this.client.setAcl(path, acl, signal ? { signal } : {});
          } catch (error) {
            if (!isZkError(error, 'NO_NODE')) throw error;
          }
        }),
      );
    }
  }

  get #call(): { readonly signal?: AbortSignal } {
    return this.#signal ? { signal: this.#signal } : {};
  }

  /** An ACL that a copy which was killed left behind: with our own entry in it. */
  async isOurWide(wanted: readonly Acl[] | undefined, found: readonly Acl[] | undefined) {
    if (wanted === undefined || found?.length !== wanted.length + 1) return false;
    this.#own ??= this.#ownEntry();
    const own = await this.#own;
    return own !== undefined && sameAcl([...wanted, own], found);
  }

  async #aclFor({ acl, childCount }: TreeNode): Promise<readonly Acl[] | undefined> {
    if (acl === undefined || isOpen(acl) || childCount === 0) return acl;
    this.#own ??= this.#ownEntry();
    const own = await this.#own;
    return own === undefined ? acl : [...acl, own];
  }

  /** Only once it is ours to narrow: another's node of the same name is left alone. */
  #remember(path: string, node: TreeNode, acl: readonly Acl[] | undefined): void {
    if (node.acl !== undefined && acl !== node.acl) this.#narrowLater.push({ path, acl: node.acl });
  }

  /** By our address, which every server knows: what we proved by a password others may share. */
  async #ownEntry(): Promise<Acl | undefined> {
    const id = await this.#ownAddress();
    return id === undefined ? undefined : { perms: permissions.all, id: { scheme: 'ip', id } };
  }

  async #ownAddress(): Promise<string | undefined> {
    const address = this.client.localAddress?.replace(/:\d+$/, '');
    try {
      const ids = await this.client.whoAmI(this.#call);
      return ids.find(({ authScheme }) => authScheme === 'ip')?.user ?? undefined;
    } catch (error) {
      if (!isZkError(error, 'UNIMPLEMENTED')) throw error;
    }
    // A server before 3.7 cannot say how it sees us: as our own end of the connection, unless that is changed on the way.
    return address !== undefined && isIPv4(address) ? address : undefined;
  }
}
