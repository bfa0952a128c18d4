/**
 * Copies a subtree from one place to another: server to server, to and from files and folders.
 *
 * First it looks: every node is compared with what stands at its place, and nothing is written. What it
 * would do is counted (or shown, for a dry run), and only then done. A node that is equal already is
 * left alone, so a copy that was interrupted is simply begun again and goes on where it was.
 *
 * What is copied: data, ACL, and whether a node is a container or has a time to live. What is not:
 * ephemeral nodes, whose sessions are elsewhere (they are counted), ZooKeeper's own /zookeeper, and
 * what a server alone gives: zxids, times, versions, the counter of sequential names.
 *
 * Memory holds names and a batch of data, never all of it.
 */

import { isZkError } from '../client/index.ts';
import { quotaRoot, statsName } from '../tree/index.ts';
import { CommandError } from './exit-codes.ts';
import { escaped } from './output.ts';
import { depthOf, joined, sameAcl, sameData, type TreeNode } from './tree-node.ts';
import { batchNodes, refuseMasked, type ZkTarget } from './tree-zk.ts';

/** What is done with a node that is there already and differs. */
export const conflictChoices = ['fail', 'overwrite', 'skip'] as const;
export type OnConflict = (typeof conflictChoices)[number];

export type Step =
  /** It is not there. */
  | 'create'
  /** Its data differs, or its data and ACL. */
  | 'change'
  /** Only its ACL differs. */
  | 'acl'
  /** It is there and not in the source: mirror alone. */
  | 'delete'
  | 'same'
  /** It differs, and is left as it is. */
  | 'skip'
  /** An ephemeral node. */
  | 'ephemeral';

export type Counts = Record<Step, number>;

export interface CopySource {
  /** As a person wrote it. */
  readonly name: string;
  /** Where it stands on its server; for messages. */
  readonly root: string;
  /** Parents first. May be asked for more than once. */
  nodes(signal: AbortSignal): AsyncIterable<TreeNode>;
}

export interface CopyOptions {
  readonly signal: AbortSignal;
  readonly onConflict: OnConflict;
  readonly withoutAcl: boolean;
  /** Delete what is not in the source. */
  readonly mirrors: boolean;
  /** The longest request that the target takes. */
  readonly requestBytesMax: number;
  /** Told of every node that is not `same`, while looking and while doing. */
  readonly onStep?: (step: Step, path: string, node: TreeNode | null) => void;
  readonly onProgress?: (counts: Counts) => void;
}

export function noCounts(): Counts {
  return { create: 0, change: 0, acl: 0, delete: 0, same: 0, skip: 0, ephemeral: 0 };
}

/** How often a node that others change at the same time is looked at again. */
const attemptsMax = 5;

export class Copy {
  readonly #source: CopySource;
  readonly #target: ZkTarget;
  readonly #options: CopyOptions;
  #hasBegun = false;

  constructor(source: CopySource, target: ZkTarget, options: CopyOptions) {
    this.#source = source;
    this.#target = target;
    this.#options = options;
  }

  /** What would be done. */
  look(): Promise<Counts> {
    return this.#run(async (node) => (await this.#decide(node)).step);
  }

  /** Does it. */
  async perform(): Promise<Counts> {
    this.#hasBegun = true;
    try {
      return await this.#run((node) => this.#bring(node), true);
    } finally {
      await this.#target.finish();
    }
  }

  async #run(work: (node: TreeNode) => Promise<Step>, deletes = false): Promise<Counts> {
    const { signal, onStep, onProgress, mirrors } = this.#options;
    const counts = noCounts();
    const seen = mirrors ? new Set<string>() : undefined;
    const count = (step: Step, path: string, node: TreeNode | null) => {
      counts[step] += 1;
      if (step !== 'same') onStep?.(step, path, node);
    };
    for await (const batch of levels(this.#source.nodes(signal))) {
      signal.throwIfAborted();
      const steps = await Promise.all(batch.map((node) => work(this.#wanted(node))));
      for (const [i, node] of batch.entries()) {
        seen?.add(node.path);
        count(steps[i]!, node.path, node);
      }
      onProgress?.(counts);
    }
    if (seen === undefined) return counts;
    for (const path of await this.#extras(seen)) {
      signal.throwIfAborted();
      if (deletes && !(await this.#target.remove(path))) count('skip', path, null);
      else count('delete', path, null);
      onProgress?.(counts);
    }
    return counts;
  }

  /** Deepest first. What a session holds is not ours to delete, nor what it stands below. */
  async #extras(seen: ReadonlySet<string>): Promise<string[]> {
    const extras: string[] = [];
    const kept = new Set<string>();
    for await (const { path, isEphemeral } of this.#target.paths()) {
      if (path === '/' || seen.has(path)) continue;
      extras.push(path);
      for (let at = path; isEphemeral && at !== ''; at = at.slice(0, at.lastIndexOf('/'))) {
        kept.add(at);
      }
    }
    return extras.filter((path) => !kept.has(path)).reverse();
  }

  #wanted(node: TreeNode): TreeNode {
    return this.#options.withoutAcl ? { ...node, acl: undefined } : node;
  }

  /** Refuses what a server would drop the link over: path and ACL stand in a request too. */
  async #decide(node: TreeNode) {
    const decided = await this.#compare(node);
    const { step } = decided;
    const requests = requestsOf(step, 'isSameAcl' in decided && decided.isSameAcl);
    if (requests.length === 0) return decided;
    const bytes = await this.#target.bytesOf(node, requests);
    const { requestBytesMax } = this.#options;
    if (bytes <= requestBytesMax) return decided;
    const path = escaped(joined(this.#target.root, node.path));
    const what = requests[0] === 'setAcl' ? 'the ACL of' : `${node.data?.length ?? 0} bytes at`;
    const message = `${what} ${path} take a request of ${bytes} bytes, and the servers take ${requestBytesMax}; see --max-buffer`;
    throw new CommandError('usage', message);
  }

  async #compare(node: TreeNode) {
    const { withoutAcl, onConflict } = this.#options;
    if (node.mode === 'ephemeral') return { step: 'ephemeral' as const };
    const path = joined(this.#target.root, node.path);
    if (!withoutAcl) refuseMasked(node, this.#source.root);
    const there = await this.#target.find(node.path, withoutAcl);
    if (there === null) return { step: 'create' as const };
    // How much of a quota is used is the server's to count.
    if (path.startsWith(`${quotaRoot}/`) && path.endsWith(`/${statsName}`)) {
      return { step: 'same' as const };
    }
    const isSameData = sameData(node.data, there.node.data);
    const isSameAcl = withoutAcl || sameAcl(node.acl, there.node.acl);
    if (isSameData && isSameAcl) return { step: 'same' as const };
    if (isSameData && (await this.#target.isOurWide(node.acl, there.node.acl))) {
      return { step: 'acl' as const, there, isSameAcl };
    }
    // The top of both stands for where they are, not for what they hold: an empty one is no conflict.
    const isConflict = there.node.mode !== 'ephemeral' && onConflict === 'fail';
    const isEmpty = there.node.data === null || there.node.data.length === 0;
    if (isConflict && !(node.path === '/' && isEmpty)) {
      const message = `${escaped(path)} is there and differs${this.#hasBegun ? '' : ', so nothing was written'}; --on-conflict overwrite or skip says what to do`;
      throw new CommandError('refused', message);
    }
    if (onConflict === 'skip' || there.node.mode === 'ephemeral') return { step: 'skip' as const };
    return { step: isSameData ? ('acl' as const) : ('change' as const), there, isSameAcl };
  }

  /** Decided anew when somebody else was there in between. */
  async #bring(wanted: TreeNode): Promise<Step> {
    for (let attempt = 1; ; attempt++) {
      const { step, there, isSameAcl } = await this.#decide(wanted);
      try {
        if (step === 'create') await this.#target.create(wanted);
        if (step === 'change') await this.#target.set(wanted, there!.stat);
        if (step === 'acl' || (step === 'change' && !isSameAcl)) {
          await this.#target.setAcl(wanted, there!.stat);
        }
        return step;
      } catch (error) {
        const isRace = isZkError(error, 'NODE_EXISTS', 'BAD_VERSION', 'NO_NODE');
        if (!isRace || attempt === attemptsMax) throw error;
      }
    }
  }
}

/** What is sent for a step. */
function requestsOf(step: Step, isSameAcl: boolean): ('create' | 'set' | 'setAcl')[] {
  if (step === 'create') return ['create'];
  if (step === 'acl') return ['setAcl'];
  if (step !== 'change') return [];
  return isSameAcl ? ['set'] : ['set', 'setAcl'];
}

/** Batches of nodes none of which stands below another. */
async function* levels(nodes: AsyncIterable<TreeNode>): AsyncGenerator<TreeNode[]> {
  let batch: TreeNode[] = [];
  let depth = 0;
  for await (const node of nodes) {
    const at = depthOf(node.path);
    if (batch.length > 0 && (at !== depth || batch.length === batchNodes)) {
      yield batch;
      batch = [];
    }
    depth = at;
    batch.push(node);
  }
  if (batch.length > 0) yield batch;
}
