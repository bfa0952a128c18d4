/**
 * A broker: registered under its id, a candidate for the controller, and host of the replicas that
 * the controller gives it. What they hold is the service's; who leads them is decided here.
 *
 *   const zk = await connect('127.0.0.1:2181', { renew: true });
 *   await using broker = await startBroker(zk, { id: 1, endpoints: ['PLAINTEXT://10.0.0.1:9092'], service });
 *
 *   starting → registered ⇄ away → …  → closed | failed
 *
 * When the session ends, or may have, every role is over in the same tick and the controller, if it
 * was here, resigns. With `renew` the next session registers anew, under a new epoch, and only then
 * takes part in the election. Without it, or when the id was taken meanwhile, the broker has failed.
 *
 * The client stays the caller's: closing the broker leaves it open.
 */

import { EventEmitter } from 'node:events';
import {
  ArgumentError,
  type Client,
  checkClient,
  isZkError,
  type Logger,
} from '../client/index.ts';
import {
  Backoff,
  type Clock,
  checkOptions,
  deferred,
  onAbort,
  systemClock,
} from '../support/index.ts';
import { generateBrokerId, registerBroker } from './broker-registration.ts';
import { BrokerReplicas } from './broker-replicas.ts';
import type { FollowerRole, LeaderRole, ReplicaService } from './broker-roles.ts';
import { clusterId, prepareCluster } from './cluster.ts';
import { Controller, type ControllerOptions } from './controller.ts';
import { IsrNotifier, type NotifierOptions } from './isr.ts';
import type { LayoutProblem, OnProblem } from './layout.ts';
import { layout08 } from './layout-08.ts';
import { type BrokerRegistration, brokerVersionNewest, parseEndpoint } from './layout-broker.ts';
import { layoutDrover } from './layout-drover.ts';
import { OneShotWatches } from './one-shot-watches.ts';
import { brokerTable } from './option-tables.ts';

export interface BrokerOptions {
  /** Left out, one is generated: from 1001 on, another at each start. */
  readonly id?: number;
  /** `listener://host:port`, at least one. */
  readonly endpoints: readonly string[];
  /** The security protocol of each listener whose name is not one itself. */
  readonly listenerProtocols?: Readonly<Record<string, string>>;
  readonly rack?: string;
  readonly jmxPort?: number;
  /** The form of the registration. The newest unless said. */
  readonly version?: number;
  readonly service: ReplicaService;
  /** False: never the controller. */
  readonly controller?:
    | false
    | Omit<ControllerOptions, 'brokerId' | 'beforeElection' | 'onProblem' | 'clock' | 'logger'>;
  /** How long to wait for what an earlier life of this broker left behind. 60 s. */
  readonly waitMs?: number;
  readonly isrNotification?: Pick<NotifierOptions, 'quietMs' | 'latestMs'>;
  readonly onProblem?: OnProblem;
  readonly logger?: Logger;
  readonly clock?: Clock;
  readonly signal?: AbortSignal;
}

export type BrokerState =
  | { readonly name: 'starting' }
  | { readonly name: 'registered'; readonly epoch: bigint }
  /** Without a session: no roles are held. */
  | { readonly name: 'away' }
  | { readonly name: 'failed'; readonly error: unknown }
  | { readonly name: 'closed' };

export interface BrokerEvents {
  state: [state: BrokerState];
  problem: [problem: LayoutProblem];
}

const registerTriesMax = 20;

export class Broker extends EventEmitter<BrokerEvents> {
  readonly id: number;
  readonly clusterId: string;
  readonly controller: Controller | null;
  readonly #client: Client;
  readonly #options: BrokerOptions;
  readonly #clock: Clock;
  readonly #registration: BrokerRegistration;
  readonly #notifier: IsrNotifier;
  readonly #replicas: BrokerReplicas;
  readonly #ended = new AbortController();
  #state: BrokerState = { name: 'starting' };
  #registered = deferred();
  #previousSessionId: bigint | undefined;
  #stopHearing: () => void = () => {};
  #closing: Promise<void> | undefined;

  /** By `startBroker` alone. */
  constructor(client: Client, id: number, cluster: string, options: BrokerOptions) {
    checkClient('Broker', client);
    checkOptions('Broker', options, brokerTable);
    super();
    this.id = id;
    this.clusterId = cluster;
    this.#client = client;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#registration = registrationOf(options, this.#clock.wallMs());
    const { clock, logger } = { clock: this.#clock, logger: options.logger };
    this.#notifier = new IsrNotifier(client, {
      ...options.isrNotification,
      clock,
      onError: (error) =>
        this.#tell({ path: layout08.isrChanges.at(), why: `not told: ${error}`, content: null }),
    });
    this.#replicas = new BrokerReplicas(client, {
      id,
      service: options.service,
      notifier: this.#notifier,
      onProblem: this.#tell,
      onBlind: (error) => this.#fail(error),
      clock,
    });
    this.controller =
      options.controller === false
        ? null
        : new Controller(client, {
            ...options.controller,
            brokerId: id,
            beforeElection: () => this.#registered.promise,
            onProblem: this.#tell,
            clock,
            ...(logger && { logger }),
          });
  }

  get state(): BrokerState {
    return this.#state;
  }

  /** The czxid of the registration; undefined while there is none. */
  get epoch(): bigint | undefined {
    return this.#state.name === 'registered' ? this.#state.epoch : undefined;
  }

  /** What this broker leads and follows now. */
  get roles(): readonly (LeaderRole | FollowerRole)[] {
    return this.#replicas.roles;
  }

  /** Resolves when all that was heard so far is dealt with, here and, if it is here, by the controller. */
  async settled(): Promise<void> {
    await this.controller?.settled();
    await this.#replicas.settled();
  }

  /** @internal */
  async start(): Promise<void> {
    await this.#replicas.start();
    this.#client.on('session', this.#sessionBegan);
    this.#client.on('state', this.#sessionMoved);
    this.#hearSession();
    await this.#register();
    this.controller?.start();
  }

  /**
   * Hands over what it leads to others in sync, then goes. `handOverMs`: how long that may take; 0
   * goes at once, and the others find out by themselves. 10 s.
   */
  async close({ handOverMs = 10_000 }: { readonly handOverMs?: number } = {}): Promise<void> {
    this.#closing ??= this.#close(handOverMs);
    await this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // ── the session ───────────────────────────────────────────────────────────────────────────────

  #hearSession(): void {
    this.#stopHearing();
    this.#previousSessionId = this.#client.sessionId ?? this.#previousSessionId;
    this.#stopHearing = onAbort(this.#client.sessionSignal, () => {
      this.#replicas.end(new Error('the session is over, or may be'));
      // One that still waits goes on waiting: whoever awaits it must not be left behind.
      if (this.#state.name === 'registered') this.#registered = deferred();
      if (this.#isLiving) this.#move({ name: 'away' });
    });
  }

  readonly #sessionBegan = (): void => {
    const previous = this.#previousSessionId;
    this.#hearSession();
    void this.#register(previous).catch((error) => this.#fail(error));
  };

  readonly #sessionMoved = (): void => {
    const { name } = this.#client.state;
    const isOver = name === 'closed' || name === 'authFailed' || name === 'expired';
    if (isOver) this.#fail(new Error(`the client is ${name}, and begins no other session`));
  };

  async #register(previousSessionId?: bigint): Promise<void> {
    const { version, waitMs } = this.#options;
    const backoff = new Backoff({ firstMs: 100, maxMs: 5_000 });
    for (let tries = 1; ; tries++) {
      const session = this.#client.sessionSignal;
      try {
        const epoch = await registerBroker(this.#client, this.id, this.#registration, {
          clock: this.#clock,
          signal: AbortSignal.any([this.#ended.signal, session]),
          onProblem: this.#tell,
          ...(version !== undefined && { version }),
          ...(waitMs !== undefined && { waitMs }),
          ...(previousSessionId !== undefined && { previousSessionId }),
        });
        if (session.aborted || !this.#isLiving) return; // the next session registers
        this.#move({ name: 'registered', epoch });
        this.#registered.resolve();
        await this.#replicas.begin(epoch);
        return;
      } catch (error) {
        const isStarting = this.#state.name === 'starting';
        // The next session registers, or none does any more.
        if ((session.aborted || this.#ended.signal.aborted) && !isStarting) return;
        // What a server says of a session may be heard before the session itself is known to be over.
        const isPassing =
          session.aborted ||
          isZkError(error, 'SESSION_EXPIRED') ||
          (isZkError(error) && error.retryable);
        if (!isPassing || tries === registerTriesMax) throw error;
        await new Promise<void>((resolve) => {
          this.#clock.after(backoff.next(), resolve);
        });
      }
    }
  }

  // ── the end ───────────────────────────────────────────────────────────────────────────────────

  async #close(handOverMs: number): Promise<void> {
    const { epoch } = this;
    if (epoch !== undefined && handOverMs > 0 && this.roles.length > 0) {
      await this.#handOver(epoch, handOverMs).catch((error) => {
        this.#tell({
          path: layoutDrover.leavings.at(),
          why: `no hand-over: ${error}`,
          content: null,
        });
      });
    }
    await this.#letGo();
    if (epoch !== undefined) await this.#signOff();
    if (this.#state.name !== 'failed') this.#move({ name: 'closed' });
  }

  /** At once, and not only with the session: the others need not wait. */
  async #signOff(): Promise<void> {
    const paths = [
      layoutDrover.leaving.at({ broker: this.id }),
      layout08.broker.at({ id: this.id }),
    ];
    for (const path of paths) {
      const { sessionId } = this.#client;
      if (sessionId === undefined) return;
      // After another session of ours, what stands there may be of somebody who took our place.
      const stat = await this.#client.exists(path).catch(ifOver);
      if (stat?.ephemeralOwner === sessionId) await this.#client.discard(path).catch(ifOver);
    }
  }

  /** Asks the controller, wherever it is, and waits until it has done what it could. */
  async #handOver(epoch: bigint, waitMs: number): Promise<void> {
    if ((await this.#client.exists(layout08.controller.at())) === null) return; // nobody to ask
    const path = layoutDrover.leaving.at({ broker: this.id });
    const data = layoutDrover.leaving.format({ brokerEpoch: epoch, isDone: false })!;
    await this.#client.create(path, data, { mode: 'ephemeral' });
    const watches = new OneShotWatches(this.#client);
    const over = deferred();
    const timer = this.#clock.after(waitMs, () => over.resolve());
    const look = async (): Promise<void> => {
      const watch = watches.on('data', path, () => void look().catch(over.reject));
      const node = await this.#client.get(path, { watch });
      if (layoutDrover.leaving.parse(node.data, path).isDone) over.resolve();
    };
    try {
      await look();
      await over.promise;
      await this.#replicas.settled();
    } finally {
      timer.cancel();
      await watches.close();
    }
  }

  async #letGo(): Promise<void> {
    this.#ended.abort();
    this.#client.off('session', this.#sessionBegan);
    this.#client.off('state', this.#sessionMoved);
    this.#stopHearing();
    this.#registered.resolve();
    await this.controller?.close();
    await this.#replicas.close();
    await this.#notifier.close();
  }

  #fail(error: unknown): void {
    if (!this.#isLiving) return;
    const { epoch } = this;
    this.#replicas.end(error);
    this.#move({ name: 'failed', error });
    this.#options.logger?.error({ error, id: this.id }, 'broker failed');
    // What stays registered counts as alive, and would go on to lead what nobody looks after.
    this.#closing ??= this.#letGo().then(() => (epoch === undefined ? undefined : this.#signOff()));
    void this.#closing.catch((cause) => {
      this.#tell({ path: layout08.broker.at({ id: this.id }), why: String(cause), content: null });
    });
  }

  get #isLiving(): boolean {
    return this.#state.name !== 'failed' && this.#state.name !== 'closed';
  }

  readonly #tell = (problem: LayoutProblem): void => {
    this.#options.logger?.warn({ ...problem }, 'kafka broker');
    this.#options.onProblem?.(problem);
    this.emit('problem', problem);
  };

  #move(state: BrokerState): void {
    this.#state = state;
    this.emit('state', state);
  }
}

/** Registers, and resolves once it is. Rejects with a `BrokerConflictError` when the id is taken. */
export async function startBroker(client: Client, options: BrokerOptions): Promise<Broker> {
  checkClient('startBroker', client);
  checkOptions('startBroker', options, brokerTable);
  const { id } = options;
  if (id !== undefined && (!Number.isSafeInteger(id) || id < 0)) {
    throw new ArgumentError('id', `a whole number from 0 is wanted, not ${id}`);
  }
  registrationOf(options, 0);
  await prepareCluster(client);
  const cluster = await clusterId(client);
  const broker = new Broker(client, id ?? (await generateBrokerId(client)), cluster, options);
  try {
    await broker.start();
    return broker;
  } catch (error) {
    await broker.close({ handOverMs: 0 });
    throw error;
  }
}

function registrationOf(options: BrokerOptions, timestampMs: number): BrokerRegistration {
  const { endpoints, listenerProtocols = {}, rack = null, jmxPort = -1 } = options;
  if (!Array.isArray(endpoints) || endpoints.length === 0) {
    throw new ArgumentError('endpoints', 'at least one is wanted, as PLAINTEXT://host:9092');
  }
  const parsed = endpoints.map((text) => {
    try {
      return parseEndpoint(text, listenerProtocols);
    } catch (error) {
      throw new ArgumentError('endpoints', (error as Error).message);
    }
  });
  const plain = parsed.find(({ protocol }) => protocol === 'PLAINTEXT');
  return {
    version: options.version ?? brokerVersionNewest,
    endpoints: parsed,
    host: plain?.host ?? null,
    port: plain?.port ?? -1,
    jmxPort,
    timestampMs,
    rack,
    features: {},
  };
}

/** Then the nodes go with the session. */
function ifOver(error: unknown): null {
  if (isZkError(error, 'SESSION_EXPIRED') || isZkError(error, 'CONNECTION_LOSS')) return null;
  throw error;
}
