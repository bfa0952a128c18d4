/**
 * An election by one node: all race to create it, and who has made it leads.
 *
 *   <path>     ephemeral; data: the leader's id. Customarily /currentMaster.
 *
 * The simplest form there is, which others can read with `get`. It is not fair: when the leader goes,
 * every candidate hears of it and all race again. For more than a few candidates use `Election`.
 *
 * What always holds: a term is given only for a node that the client's current session owns. When the
 * reply to a create was lost, the node's owner is looked at. Epochs grow from term to term.
 *
 * An appointment makes a leader step down whose term began before it; then all but the appointed one
 * hold back for `standBackMs`, so that it can win, and race after that, so that somebody leads even if
 * it is dead. NOT promised: see `Term`.
 */

import { type Client, checkClient, isZkError, type StatView } from '../client/index.ts';
import { checkOptions, type Deferred, deferred, unlessAborted } from '../support/index.ts';
import type { Appointed } from './appointment.ts';
import { Candidate, type CandidateOptions } from './candidate.ts';
import { Grant } from './grant.ts';
import { watchNode } from './node-watch.ts';
import { staticElectionTable } from './option-tables.ts';
import { withParents } from './parents.ts';
import { isPassing } from './passing.ts';
import { pause } from './pause.ts';
import { takeBack } from './take-back.ts';
import { whileLinked } from './while-linked.ts';

export interface StaticElectionOptions extends CandidateOptions {
  /** How long the one who was appointed is given to win. 5 s. */
  readonly standBackMs?: number;
}

interface Claim {
  readonly owner: StaticElection;
  readonly freed: Deferred<void>;
}

/** Who of this process has made which node: two candidates on one client have one session. */
const claims = new WeakMap<Client, Map<string, Claim>>();

export class StaticElection extends Candidate {
  protected override readonly canGuard = false;
  readonly #standBackMs: number;
  #grant: Grant | undefined;
  /** It is not known whether we have made the node. Until it is, the claim is ours. */
  #isUnsure = false;
  /** A read that sets a watch, and may come too late to be wanted: then the watch is taken away. */
  #asked: Promise<void> | undefined;

  constructor(client: Client, path: string, options: StaticElectionOptions = {}) {
    checkClient('StaticElection', client);
    checkOptions('StaticElection', options, staticElectionTable);
    super(client, path, options);
    this.#standBackMs = options.standBackMs ?? 5_000;
  }

  protected override async stand(signal: AbortSignal): Promise<Grant> {
    const { client, path } = this;
    for (;;) {
      signal.throwIfAborted();
      const asked = watchNode(client, path);
      this.#asked = asked.then(
        async (late) => {
          if (signal.aborted) await late?.stop();
        },
        () => {}, // whoever waits for it is told below
      );
      const watched = await unlessAborted(asked, signal);
      if (watched === null) {
        const { appointed } = this;
        if (appointed !== null && appointed.id !== this.id && !this.#isUnsure) {
          await pause(this.clock, this.#standBackMs, signal);
          signal.throwIfAborted();
        }
        // One of the same session that has lost the node, and whose work goes on, holds us up, and nobody
        // else: no watch tells when it is done.
        const claim = this.#claim();
        if (claim.owner !== this) {
          await unlessAborted(claim.freed.promise, signal);
          continue;
        }
        const grant = await this.#create(signal);
        if (grant !== null) return grant;
        continue;
      }
      try {
        const isOurs = watched.found.stat.ephemeralOwner === client.sessionId;
        if (this.#isUnsure && isOurs && this.#claim().owner === this) {
          return await this.#won({ path, stat: watched.found.stat });
        }
        this.#isUnsure = false;
        this.#unclaim();
        if (!isOurs && this.isAppointable) await this.claimAppointment();
        await unlessAborted(watched.changed, signal);
      } finally {
        await whileLinked(client, watched.stop());
      }
    }
  }

  protected override async leave(): Promise<void> {
    const grant = this.#grant;
    this.#grant = undefined;
    await grant?.release();
    if (this.#isUnsure) await this.#takeBack();
    if (this.#asked !== undefined) await whileLinked(this.client, this.#asked);
    this.#unclaim();
  }

  protected override async isInTheWay(appointed: Appointed & { zxid: bigint }): Promise<boolean> {
    return this.#grant !== undefined && appointed.zxid > this.#grant.fencingToken;
  }

  /** Null when somebody else has it, or when it is not known whether we have. */
  async #create(signal: AbortSignal): Promise<Grant | null> {
    const { client, path, acl } = this;
    try {
      this.#isUnsure = true; // until the reply is there
      const options = { mode: 'ephemeral', ...(acl && { acl }), signal } as const;
      const node = await withParents(client, path, acl, () =>
        client.create(path, this.id, options),
      );
      return await this.#won(node);
    } catch (error) {
      if (isZkError(error, 'CONNECTION_LOSS') && !signal.aborted) return null;
      // Where it may have been made all the same, `leave` looks.
      if (signal.aborted || (isZkError(error) && error.outcomeUnknown)) throw error;
      this.#isUnsure = false;
      this.#unclaim();
      if (isZkError(error, 'NODE_EXISTS')) return null;
      throw error;
    }
  }

  /** A node of which we have not heard that it is there. */
  async #takeBack(): Promise<void> {
    const { client, path, clock } = this;
    const isOurs = ({ ephemeralOwner }: StatView) => ephemeralOwner === client.sessionId;
    try {
      await takeBack(client, path, isOurs, clock);
      this.#isUnsure = false;
    } catch (error) {
      if (!isPassing(error)) throw error; // it goes with its session, or is found when we stand again
    }
  }

  async #won(node: ConstructorParameters<typeof Grant>[1]): Promise<Grant> {
    this.#isUnsure = false;
    this.#grant = new Grant(this.client, node);
    await this.#grant.ready;
    return this.#grant;
  }

  /** Ours, unless another has one already. */
  #claim(): Claim {
    const held = claims.get(this.client) ?? new Map<string, Claim>();
    claims.set(this.client, held);
    const claim = held.get(this.path) ?? { owner: this, freed: deferred() };
    held.set(this.path, claim);
    return claim;
  }

  #unclaim(): void {
    const held = claims.get(this.client);
    const claim = held?.get(this.path);
    if (claim?.owner !== this) return;
    held!.delete(this.path);
    claim.freed.resolve();
  }
}
