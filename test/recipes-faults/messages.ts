/** What a worker and its campaign say to each other. Bigints pass: the channel clones. */

export type FromWorker =
  | { readonly type: 'session'; readonly sessionId: bigint; readonly password: Uint8Array }
  | { readonly type: 'begun' | 'frozen' | 'finished' }
  | { readonly type: 'round'; readonly recipe: string }
  /** Something of the network's or the session's, which is part of the game. */
  | { readonly type: 'failed'; readonly recipe: string; readonly error: string }
  | { readonly type: 'bug'; readonly recipe: string; readonly error: string }
  | {
      readonly type: 'ask' | 'tell';
      readonly id: number;
      readonly recipe: string;
      readonly what: string;
      readonly args: unknown[];
    };

export type ToWorker =
  | { readonly type: 'answer'; readonly id: number; readonly value: unknown }
  /** No more rounds. */
  | { readonly type: 'freeze' }
  | { readonly type: 'finish' };
