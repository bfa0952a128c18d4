/**
 * ZooKeeper's opcodes, as ZooDefs.java numbers them. Not imported from src/: what checks our code must not
 * be made by it.
 */
const codes = {
  create: 1,
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getACL: 6,
  setACL: 7,
  getChildren: 8,
  sync: 9,
  ping: 11,
  getChildren2: 12,
  check: 13,
  multi: 14,
  create2: 15,
  reconfig: 16,
  checkWatches: 17,
  removeWatches: 18,
  createContainer: 19,
  deleteContainer: 20,
  createTTL: 21,
  multiRead: 22,
  auth: 100,
  setWatches: 101,
  sasl: 102,
  getEphemerals: 103,
  getAllChildrenNumber: 104,
  setWatches2: 105,
  addWatch: 106,
  whoAmI: 107,
  createSession: -10,
  closeSession: -11,
} as const;

export type OpName = keyof typeof codes;

export function opCode(name: OpName): number {
  return codes[name];
}

export function opName(code: number): string {
  const entry = Object.entries(codes).find(([, number]) => number === code);
  return entry?.[0] ?? 'unknown';
}
