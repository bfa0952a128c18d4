/** What a campaign of the simulation is told, and what it tells in the end. */

import type { LeaderStep, RuleInput } from '../../src/align/index.ts';

export type Fault = 'kill' | 'pause' | 'cut';

export interface CampaignOptions {
  readonly seed: number;
  /** For so long partitions grow. */
  readonly minutes: number;
  readonly members: number;
  readonly partitions: number;
  readonly mode?: RuleInput;
  readonly allowanceMs?: number;
  /** About so much time lies between two faults; none: no faults at random. */
  readonly faultEveryMs?: number;
  /** The rule is changed now and then. */
  readonly changesRule?: boolean;
  /** People pause the group now and then, let it on step by step, and let it go. */
  readonly holds?: boolean;
  /** One fault, when the leader comes to this step for the n-th time. */
  readonly faultAt?: {
    readonly step: LeaderStep;
    readonly count: number;
    readonly fault: Fault;
    /** So much later: a request has left by then, or its reply has. */
    readonly afterMs?: number;
    readonly forMs?: number;
  };
  /** A record of each partition comes about so often. 20 s. */
  readonly recordEveryMs?: number;
  readonly onProgress?: (minutes: number) => void;
}

export interface CampaignReport {
  readonly records: number;
  readonly handed: number;
  readonly cuts: number;
  readonly calls: number;
  readonly faults: Readonly<Record<string, number>>;
  /** What people did to hold it: how often each. */
  readonly holds: Readonly<Record<string, number>>;
  readonly stepsTaken: Readonly<Record<string, number>>;
  readonly epochs: number;
  readonly requests: number;
  readonly quarantined: number;
  readonly simulatedMinutes: number;
  /** From the end of all faults until everybody had caught up. */
  readonly catchUpMsMax: number;
  readonly fingerprint: string;
}
