/**
 * The controller of a cluster: one broker at a time, elected through /controller, decides who leads
 * which partition. Each election raises /controller_epoch, and every write of a controller checks it
 * in the same multi, so that two can never both change anything.
 *
 *   stopped → standby ⇄ electing → active → standby …
 *
 * It resigns in the same tick in which its session is, or may be, over: its queue is emptied and
 * nothing is sent any more, before the client has begun another session. It does so too when another
 * was elected, or when something failed that leaves its memory in doubt; then it gives /controller up
 * after a pause and whoever is elected next reads everything anew.
 *
 * What it does not do: talk to brokers. They watch the nodes (see `broker.ts`).
 */

import { EventEmitter } from 'node:events';
import {
  ArgumentError,
  type Client,
  checkClient,
  type DataAndStat,
  isZkError,
  type Logger,
} from '../client/index.ts';
import {
  Backoff,
  type Clock,
  checkOptions,
  HeldSignal,
  onAbort,
  silentLogger,
  systemClock,
  type Timer,
} from '../support/index.ts';
import type { ElectionResult } from './controller-partitions.ts';
import { ControllerMovedError, type Term } from './controller-store.ts';
import { ControllerTerm, type TermOptions } from './controller-term.ts';
import type { LayoutProblem, OnProblem } from './layout.ts';
import { layout08 } from './layout-08.ts';
import type { TopicPartition } from './layout-admin.ts';
import { OneShotWatches } from './one-shot-watches.ts';
import { controllerTable } from './option-tables.ts';
import { TurnQueue } from './turn-queue.ts';

export interface BalanceOptions {
  /** How long after an election it looks first. 5 s. */
  readonly firstMs?: number;
  /** And how often after that. 300 s. */
  readonly everyMs?: number;
  /** Of the partitions that a broker should lead, how many percent may be led by others. 10. */
  readonly imbalancePercentMax?: number;
}

export interface ControllerOptions {
  readonly brokerId: number;
  /** Whether topics may be deleted. True. */
  readonly deleteTopics?: boolean;
  /** Whether a replica that is behind may lead when nobody else lives, losing records. False. */
  readonly uncleanElection?: boolean;
  /** Whether topics without an id get one, as from 2.8 on. True. */
  readonly topicIds?: boolean;
  /** Leaders go back to the first of their replicas by themselves. True, with Kafka's times. */
  readonly autoBalance?: boolean | BalanceOptions;
  /** Awaited before each election: a broker registers here first. */
  readonly beforeElection?: () => Promise<void>;
  /** Told of nodes that cannot be read, partitions without a leader, requests that were refused. */
  readonly onProblem?: OnProblem;
  readonly logger?: Logger;
  readonly clock?: Clock;
}

export type ControllerState =
  | { readonly name: 'stopped' }
  /** Another is the controller: its broker, where that is known. */
  | { readonly name: 'standby'; readonly controller: number | null }
  | { readonly name: 'electing' }
  | { readonly name: 'active'; readonly epoch: number };

export interface ControllerEvents {
  state: [state: ControllerState];
  problem: [problem: LayoutProblem];
}

export class Controller extends EventEmitter<ControllerEvents> {
  readonly #client: Client;
  readonly #options: ControllerOptions;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #turns = new TurnQueue();
  readonly #watches: OneShotWatches;
  readonly #backoff = new Backoff({ firstMs: 100, maxMs: 10_000 });
  #state: ControllerState = { name: 'stopped' };
  #term: { readonly run: ControllerTerm; readonly end: HeldSignal } | undefined;
  #stopHearing: () => void = () => {};
  #balancing: Timer | undefined;
  #again: Timer | undefined;
  #closing: Promise<void> | undefined;

  constructor(client: Client, options: ControllerOptions) {
    checkClient('Controller', client);
    checkOptions('Controller', options, controllerTable);
    super();
    const { brokerId } = options;
    if (!Number.isSafeInteger(brokerId) || brokerId < 0) {
      throw new ArgumentError('brokerId', `a whole number from 0 is wanted, not ${brokerId}`);
    }
    this.#client = client;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#logger = options.logger ?? silentLogger;
    this.#watches = new OneShotWatches(client);
  }

  get state(): ControllerState {
    return this.#state;
  }

  get isActive(): boolean {
    return this.#state.name === 'active';
  }

  /** Takes part in elections from now on. */
  start(): void {
    if (this.#state.name !== 'stopped' || this.#closing) return;
    this.#move({ name: 'standby', controller: null });
    this.#client.on('session', this.#sessionBegan);
    this.#hearSession();
    this.#turns.put('elect', this.#elect);
  }

  /** Gives the office up, so that another is elected at once. */
  async close(): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Resolves when all that was heard so far is dealt with. For tests and tools. */
  async settled(): Promise<void> {
    await this.#turns.idle();
  }

  // ── what can be asked of an active controller ─────────────────────────────────────────────────

  async electLeaders(
    partitions: readonly TopicPartition[],
    type: 'preferred' | 'unclean',
  ): Promise<ElectionResult[]> {
    return this.#ask((term) => term.elect(partitions, type));
  }

  /** Moves a partition to these brokers, or back with null. Rejects with the reason when refused. */
  async reassign(at: TopicPartition, replicas: readonly number[] | null): Promise<void> {
    const refused = await this.#ask((term) => term.reassignments.begin(at, replicas));
    if (refused !== null) throw new ArgumentError('replicas', refused);
  }

  /** Hands over what a broker leads. What it leads still comes back: nobody else is in sync. */
  async handOver(broker: number): Promise<TopicPartition[]> {
    return this.#ask((term) => term.handOver(broker));
  }

  async #ask<T>(work: (term: ControllerTerm) => Promise<T>): Promise<T> {
    return this.#turns.ask(async () => {
      const term = this.#term;
      if (term === undefined) throw new ControllerMovedError('this broker is not the controller');
      try {
        return await work(term.run);
      } catch (error) {
        await this.#failed(error);
        throw error;
      }
    });
  }

  // ── elections ─────────────────────────────────────────────────────────────────────────────────

  readonly #elect = async (): Promise<void> => {
    if (this.#closing) return;
    try {
      if ((await this.#seat()) !== 'free') return;
      this.#move({ name: 'electing' });
      await this.#options.beforeElection?.();
      if (this.#closing) return;
      const won = await this.#run();
      if (won === null) {
        this.#move({ name: 'standby', controller: null });
        this.#turns.put('elect', this.#elect); // to hear of its end, or to try again
        return;
      }
      await this.#begin(won);
    } catch (error) {
      await this.#failed(error);
    }
  };

  /** Who sits on it. Sets the watch; resigns when it is somebody else. */
  async #seat(): Promise<'free' | 'taken'> {
    const path = layout08.controller.at();
    const watch = this.#watches.on('data', path, () => this.#turns.put('elect', this.#elect));
    const stat = await this.#client.exists(path, { watch });
    if (stat === null) {
      if (this.#term) this.#resign('its node is gone');
      return 'free';
    }
    const holder = await this.#holder(path);
    const isOurs = this.#isOurs(stat.ephemeralOwner, holder);
    if (isOurs && this.#term) return 'taken';
    if (isOurs) {
      await this.#client.delete(path, { version: stat.version }).catch(ignoreGone);
      return this.#seat(); // left by a term of ours that ended without it
    }
    if (this.#term) this.#resign('another was elected');
    this.#move({ name: 'standby', controller: holder });
    return 'taken';
  }

  /** The broker that the node names. Null: none can be read there. */
  async #holder(path: string): Promise<number | null> {
    const node = await this.#client.get(path).catch(ignoreGone);
    const holder = node && layout08.controller.tryParse(node.data, path, this.#tell);
    return holder?.brokerId ?? null;
  }

  /** One client may serve several brokers: a node of its session that names another is that one's. */
  #isOurs(session: bigint | undefined, holder: number | null): boolean {
    if (session !== this.#client.sessionId) return false;
    return holder === null || holder === this.#options.brokerId;
  }

  /** Node and epoch in one multi. Null: somebody else was faster. */
  async #run(): Promise<{ epoch: number; epochVersion: number } | null> {
    const path = layout08.controllerEpoch.at();
    const before = await this.#epochNode(path);
    const epoch = layout08.controllerEpoch.parse(before.data, path) + 1;
    const { brokerId } = this.#options;
    const data = layout08.controller.format({
      brokerId,
      timestampMs: this.#clock.wallMs(),
      kraftControllerEpoch: -1,
    })!;
    try {
      const [, stat] = await this.#client.multi([
        { op: 'create', path: layout08.controller.at(), data, mode: 'ephemeral' },
        { op: 'set', path, data: String(epoch), version: before.stat.version },
      ]);
      return { epoch, epochVersion: stat.version };
    } catch (error) {
      const isRace = isZkError(error, 'NODE_EXISTS') || isZkError(error, 'BAD_VERSION');
      if (!isRace && !(isZkError(error) && error.outcomeUnknown)) throw error;
    }
    // Perhaps it was us, and only the reply was lost.
    const seat = await this.#client.exists(layout08.controller.at());
    const now = await this.#client.get(path);
    const isOurs = this.#isOurs(seat?.ephemeralOwner, await this.#holder(layout08.controller.at()));
    if (!isOurs || now.stat.version !== before.stat.version + 1) return null;
    return { epoch, epochVersion: now.stat.version };
  }

  /** Made with 0 where there never was a controller, whoever makes it. */
  async #epochNode(path: string): Promise<DataAndStat> {
    const node = await this.#client.get(path).catch(ignoreGone);
    if (node !== null) return node;
    try {
      await this.#client.create(path, '0');
    } catch (error) {
      const mayBeThere =
        isZkError(error, 'NODE_EXISTS') || (isZkError(error) && error.outcomeUnknown);
      if (!mayBeThere) throw error;
    }
    return this.#client.get(path);
  }

  async #begin({ epoch, epochVersion }: { epoch: number; epochVersion: number }): Promise<void> {
    const end = new HeldSignal(() => void this.#client.state);
    const term: Term = {
      brokerId: this.#options.brokerId,
      epoch,
      epochVersion,
      signal: end.signal,
    };
    const { deleteTopics = true, uncleanElection = false, topicIds = true } = this.#options;
    const options: TermOptions = { deleteTopics, uncleanElection, topicIds, onProblem: this.#tell };
    const run = new ControllerTerm(this.#client, term, options, (key, work) => {
      this.#turns.put(key, async () => {
        if (end.isAborted) return;
        await work().catch((error) => this.#failed(error));
      });
    });
    this.#term = { run, end };
    if (this.#closing) return; // whoever closes waits for us, and gives up what was won
    this.#logger.info({ epoch, brokerId: term.brokerId }, 'elected controller');
    await run.failover();
    if (end.isAborted) return;
    this.#backoff.reset();
    this.#move({ name: 'active', epoch });
    const { autoBalance = true } = this.#options;
    if (autoBalance) this.#balance(run, autoBalance === true ? {} : autoBalance);
  }

  #balance(run: ControllerTerm, options: BalanceOptions): void {
    const { firstMs = 5_000, everyMs = 300_000, imbalancePercentMax = 10 } = options;
    const arm = (afterMs: number) => {
      this.#balancing = this.#clock.after(
        afterMs,
        () => {
          this.#turns.put('balance', async () => {
            if (this.#term?.run !== run) return;
            await run.partitions.balance(imbalancePercentMax).catch((error) => this.#failed(error));
          });
          arm(everyMs);
        },
        true,
      );
    };
    arm(firstMs);
  }

  // ── the end of a term ─────────────────────────────────────────────────────────────────────────

  /** In this very tick: nothing of this term is sent from here on. */
  #resign(why: string): void {
    const term = this.#term;
    this.#balancing?.cancel();
    this.#turns.clear(new ControllerMovedError(`no longer the controller: ${why}`));
    if (term === undefined) return;
    this.#term = undefined;
    term.end.abort(new ControllerMovedError(why));
    this.#logger.info({ brokerId: this.#options.brokerId, why }, 'resigned as controller');
    this.#move({ name: 'standby', controller: null });
    void term.run.close();
  }

  async #failed(error: unknown): Promise<void> {
    const isMoved = error instanceof ControllerMovedError;
    const isOver = isZkError(error, 'SESSION_EXPIRED') || this.#client.sessionId === undefined;
    const term = this.#term;
    if (!isMoved && !isOver) {
      const why = error instanceof Error ? error.message : String(error);
      this.#tell({
        path: layout08.controller.at(),
        why: `gave the office up: ${why}`,
        content: null,
      });
      // Fenced as all else: it cannot be another's that goes.
      await this.#leaveSeat(term?.run);
    }
    if (term !== undefined && term === this.#term) this.#resign(String(error));
    if (this.#closing || isOver) return; // the next session begins with an election
    this.#again?.cancel();
    this.#again = this.#clock.after(
      this.#backoff.next(),
      () => this.#turns.put('elect', this.#elect),
      true,
    );
  }

  async #leaveSeat(run: ControllerTerm | undefined): Promise<void> {
    try {
      await run?.store.remove(layout08.controller.at());
    } catch (error) {
      // Another has it, or the session is over: it is not ours any more. Else it goes with the session.
      if (error instanceof ControllerMovedError) return;
      this.#tell({ path: layout08.controller.at(), why: `not given up: ${error}`, content: null });
    }
  }

  readonly #sessionBegan = (): void => {
    this.#hearSession();
    this.#turns.put('elect', this.#elect);
  };

  #hearSession(): void {
    this.#stopHearing();
    this.#stopHearing = onAbort(this.#client.sessionSignal, () =>
      this.#resign('its session is over'),
    );
  }

  async #close(): Promise<void> {
    this.#client.off('session', this.#sessionBegan);
    this.#stopHearing();
    this.#again?.cancel();
    this.#balancing?.cancel();
    const gone = new ControllerMovedError('the controller was closed');
    // An election under way may be won yet: only then is it known what there is to give up.
    this.#turns.clear(gone);
    await this.#turns.idle();
    const term = this.#term;
    if (term !== undefined) {
      await this.#leaveSeat(term.run);
      this.#resign('it was closed');
      await term.run.close();
    }
    await this.#turns.close(gone);
    await this.#watches.close();
    this.#move({ name: 'stopped' });
  }

  readonly #tell = (problem: LayoutProblem): void => {
    this.#logger.warn({ ...problem }, 'kafka controller');
    this.#options.onProblem?.(problem);
    this.emit('problem', problem);
  };

  #move(state: ControllerState): void {
    const before = this.#state;
    if (JSON.stringify(before) === JSON.stringify(state)) return;
    this.#state = state;
    this.emit('state', state);
  }
}

function ignoreGone(error: unknown): null {
  if (isZkError(error, 'NO_NODE') || isZkError(error, 'BAD_VERSION')) return null;
  throw error;
}
