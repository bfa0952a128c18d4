/** What `cons` calls the last op of a link (FinalRequestProcessor's `lastOp`). */

import { type OpName, ops } from '../protocol/index.ts';

// biome-ignore format: a table is read down its columns
const names: { readonly [N in OpName]?: string } = {
  ping:           'PING', createSession:        'SESS',   multi:           'MULT', multiRead:    'MLTR',
  create:         'CREA', create2:              'CREA',   createTTL:       'CREA', createContainer: 'CREA',
  delete:         'DELE', deleteContainer:      'DELE',   setData:         'SETD', reconfig:     'RECO',
  setACL:         'SETA', closeSession:         'CLOS',   sync:            'SYNC', check:        'CHEC',
  exists:         'EXIS', getData:              'GETD',   setWatches:      'SETW', setWatches2:  'STW2',
  addWatch:       'ADDW', getACL:               'GETA',   getChildren:     'GETC', getChildren2: 'GETC',
  getAllChildrenNumber: 'GETACN', checkWatches: 'CHKW',   removeWatches:   'REMW', whoAmI:       'HOMI',
  getEphemerals:  'GETE',
};

const byCode = new Map(
  Object.entries(names).map(([op, name]) => [ops[op as OpName].code as number, name]),
);

/** Null, as Java prints it, of a link that nothing was answered on; not applicable to what failed. */
export function lastOperation({
  lastCode,
}: {
  readonly lastCode: number | undefined;
}): string | null {
  return lastCode === undefined ? null : (byCode.get(lastCode) ?? 'NA');
}
