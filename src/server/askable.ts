/** Which op a request asks for, by the number in its header. */

import { type OpName, ops } from '../protocol/index.ts';

export interface Askable {
  readonly name: OpName;
  readonly writes: boolean;
}

/** The numbers of ops, from closeSession's -11 on, are places in a list from here. */
const firstCode = -16;

/** Ops that a link may ask for. `check` alone is none: it lives in a multi (Request.isValid). */
const askable: (Askable | undefined)[] = [];
for (const name of Object.keys(ops) as OpName[]) {
  if (['check', 'createSession', 'auth', 'sasl'].includes(name)) continue;
  const { code, writes } = ops[name];
  while (askable.length <= code - firstCode) askable.push(undefined);
  askable[code - firstCode] = { name, writes };
}

/** Undefined for what no link may ask for. */
export const askableOf = (code: number): Askable | undefined => askable[code - firstCode];

/** The same, by their names. */
export const requestOps: readonly OpName[] = askable.flatMap((op) => op?.name ?? []);
