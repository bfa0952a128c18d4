/**
 * Where txns go before anybody hears of them. `storage/` has the one that writes files; this is what
 * the server asks of it, and one that keeps nothing, for tests and for `inMemory`.
 */

import type { DigestHalves, TxnBody } from '../protocol/index.ts';
import type { TxnHead } from '../tree/index.ts';

export interface LoggedTxn {
  readonly head: TxnHead;
  readonly body: TxnBody;
  /** The tree's digest as the txn will leave it, where one is kept; errors have none. */
  readonly digest?: DigestHalves | undefined;
}

export interface TxnLog {
  /**
   * Resolves once every txn of the batch would survive a loss of power. A rejection is final: the
   * server acknowledges nothing more and stops. Called with the next batch only after it resolved.
   * `isQuiet`: hardly anybody else is there who would wait if this were done before anything else.
   */
  append(batch: readonly LoggedTxn[], isQuiet?: boolean): Promise<void>;
  close(): Promise<void>;
  /** It waits for no disk. */
  readonly isInstant?: boolean;
}

export const memoryLog: TxnLog = {
  append: () => Promise.resolve(),
  close: () => Promise.resolve(),
  isInstant: true,
};
