/**
 * Limits of quotas and what is used of them, summed up by the first name of their paths, as Apache's
 * QuotaMetricsUtils shows them. A hard limit counts where there is one; no limit is -1.
 *
 * Anybody may write quotas, so no more than `quotaNodesMax` nodes are looked at each time.
 */

import { limitsName, noNode, parseQuota, quotaRoot, statsName, type Tree } from '../tree/index.ts';

export const quotaNodesMax = 10_000;

export interface QuotaSums {
  readonly countLimit: Map<string, number>;
  readonly bytesLimit: Map<string, number>;
  readonly countUsage: Map<string, number>;
  readonly bytesUsage: Map<string, number>;
}

/** The first name of a path. */
export const namespaceOf = (path: string): string => path.split('/', 2)[1] ?? '';

export function quotaSums(tree: Tree): QuotaSums {
  const { nodes } = tree;
  const sums: QuotaSums = {
    ...{ countLimit: new Map(), bytesLimit: new Map() },
    ...{ countUsage: new Map(), bytesUsage: new Map() },
  };
  const root = tree.find(quotaRoot);
  const open = root === noNode ? [] : [root];
  let left = quotaNodesMax;
  for (let node = open.pop(); node !== undefined && left > 0; node = open.pop()) {
    left -= 1;
    if (nodes.childCount(node) > 0) {
      for (const child of nodes.childrenOf(node)) open.push(child);
      continue;
    }
    const path = nodes.pathOf(node).slice(quotaRoot.length);
    const isLimits = path.endsWith(`/${limitsName}`);
    if (!isLimits && !path.endsWith(`/${statsName}`)) continue;
    const quota = parseQuota(nodes.dataOf(node));
    if (quota === null) continue;
    const name = namespaceOf(path);
    const hardOr = (hard: bigint, soft: bigint) => (hard > -1n ? hard : soft);
    if (isLimits) {
      add(sums.countLimit, name, hardOr(quota.countHardLimit, quota.count));
      add(sums.bytesLimit, name, hardOr(quota.byteHardLimit, quota.bytes));
    } else {
      add(sums.countUsage, name, quota.count);
      add(sums.bytesUsage, name, quota.bytes);
    }
  }
  return sums;
}

function add(sums: Map<string, number>, name: string, amount: bigint): void {
  sums.set(name, (sums.get(name) ?? 0) + Number(amount));
}
