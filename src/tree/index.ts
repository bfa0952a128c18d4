export { AclCache, nobodyAcl, openAclId } from './acl-cache.ts';
export { numberOf, readLong, writeLong } from './longs.ts';
export { type LoadedStat, statBytes } from './node-record.ts';
export { type NewNode, NodeStore } from './node-store.ts';
export {
  containerOwner,
  isTtl,
  type OwnerKind,
  ownerKind,
  ttlOfOwner,
  ttlOwner,
} from './owners.ts';
export { pathHash } from './path-hash.ts';
export { noNode } from './path-index.ts';
export { PathPrefixes } from './path-prefixes.ts';
export { PlainPath } from './plain-path.ts';
export {
  limitsName,
  limitsPath,
  parseQuota,
  type QuotaText,
  quotaRoot,
  readQuota,
  statsName,
  statsPath,
  usageText,
} from './quotas.ts';
export { type Applied, Tree, type TreeEvent, type TreeOptions, type TxnHead } from './tree.ts';
export type { RestoredNode, TreeRestore } from './tree-restore.ts';
