/** Where the journal of command lines stands; apart from what reads and writes it, since every command asks. */

import { join } from 'node:path';
import type { Context } from './command.ts';

/** Null: there is none. A process without a home keeps none either. */
export function journalFile(environment: Context['environment']): string | null {
  const { DROVER_JOURNAL, XDG_STATE_HOME, HOME, USERPROFILE } = environment;
  if (DROVER_JOURNAL !== undefined) return DROVER_JOURNAL === '' ? null : DROVER_JOURNAL;
  const home = HOME || USERPROFILE;
  const state = XDG_STATE_HOME || (home && join(home, '.local', 'state'));
  return state ? join(state, 'drover', 'journal.ndjson') : null;
}
