/**
 * A broker's place in /brokers/ids: an ephemeral node whose czxid is the broker's epoch.
 *
 * An id, or an address, that another session holds is an error: two brokers with one id would both
 * answer for the same partitions. A reply that was lost is told from that by the node's owner. A node
 * that says the very same and belongs to another session is what an earlier life of this broker left
 * behind: it goes with that session, and is waited for, but not for ever (KAFKA-7165).
 */

import { type Client, checkClient, isZkError } from '../client/index.ts';
import { type Clock, checkOptions, deferred, onAbort, systemClock } from '../support/index.ts';
import type { OnProblem } from './layout.ts';
import { layout08 } from './layout-08.ts';
import { type BrokerRegistration, formatEndpoint } from './layout-broker.ts';
import { OneShotWatches } from './one-shot-watches.ts';
import { registerTable } from './option-tables.ts';

/** Another broker has this id, or this address. */
export class BrokerConflictError extends Error {
  override readonly name = 'BrokerConflictError';
  readonly code: 'BROKER_ID_TAKEN' | 'BROKER_ADDRESS_TAKEN';
  readonly brokerId: number;

  constructor(code: BrokerConflictError['code'], brokerId: number, message: string) {
    super(message);
    this.code = code;
    this.brokerId = brokerId;
  }
}

export interface RegisterOptions {
  /** The form to write. The newest unless said. */
  readonly version?: number;
  /** The session of this very process before: what it left may be taken away at once. */
  readonly previousSessionId?: bigint;
  /** How long to wait for a node that an earlier life left behind. 60 s. */
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
  readonly onProblem?: OnProblem;
}

const triesMax = 20;

/** Registers, and gives back the broker's epoch. */
export async function registerBroker(
  client: Client,
  id: number,
  broker: BrokerRegistration,
  options: RegisterOptions = {},
): Promise<bigint> {
  checkClient('registerBroker', client);
  checkOptions('registerBroker', options, registerTable);
  const path = layout08.broker.at({ id });
  const data = layout08.broker.format(broker, options.version)!;
  await refuseTakenAddress(client, id, broker, options.onProblem ?? (() => {}));
  const clock = options.clock ?? systemClock;
  const deadlineMs = clock.nowMs() + (options.waitMs ?? 60_000);
  for (let tries = 1; ; tries++) {
    options.signal?.throwIfAborted();
    try {
      // In two steps, though one could do: so the reply brings the Stat from servers of any age.
      const [, stat] = await client.multi([
        { op: 'create', path, mode: 'ephemeral' },
        { op: 'set', path, data, version: 0 },
      ]);
      return stat.czxid;
    } catch (error) {
      const mayBeThere =
        isZkError(error, 'NODE_EXISTS') || (isZkError(error) && error.outcomeUnknown);
      if (!mayBeThere || tries === triesMax) throw error;
    }
    const node = await client.get(path).catch(orNull);
    if (node === null) continue;
    const { ephemeralOwner, czxid, version } = node.stat;
    if (ephemeralOwner === client.sessionId) return czxid;
    if (ephemeralOwner === options.previousSessionId) {
      await client.delete(path, { version }).catch(orNull);
      continue;
    }
    const leftMs = deadlineMs - clock.nowMs();
    const isOurEarlierLife = describesUs(node.data, path, broker);
    if (!isOurEarlierLife || leftMs <= 0) {
      throw new BrokerConflictError(
        'BROKER_ID_TAKEN',
        id,
        `${path} belongs to session 0x${ephemeralOwner.toString(16)}, not to us: ` +
          (isOurEarlierLife
            ? 'an earlier life of this broker, whose session has not ended yet; start again later'
            : 'another broker has this id; give one of them another'),
      );
    }
    await goneOrOver(client, path, clock, leftMs, options.signal);
  }
}

/** An id that nobody has: the version of /brokers/seqid, above those that people choose. */
export async function generateBrokerId(client: Client, reservedMax = 1_000): Promise<number> {
  const { version } = await client.set(layout08.brokerSequence.at(), '');
  return reservedMax + version;
}

async function refuseTakenAddress(
  client: Client,
  id: number,
  broker: BrokerRegistration,
  onProblem: OnProblem,
): Promise<void> {
  const ours = new Set(addressesOf(broker));
  const names = (await client.children(layout08.brokerIds.at())).filter(
    (one) => one !== String(id),
  );
  await Promise.all(
    names.map(async (other) => {
      const path = layout08.broker.at({ id: other });
      const node = await client.get(path).catch(orNull);
      const theirs = node && layout08.broker.tryParse(node.data, path, onProblem);
      const shared = theirs && addressesOf(theirs).find((address) => ours.has(address));
      if (!shared) return;
      const why = `broker ${other} says that it is at ${shared}: give broker ${id} another address`;
      throw new BrokerConflictError('BROKER_ADDRESS_TAKEN', id, why);
    }),
  );
}

function addressesOf({ endpoints }: BrokerRegistration): string[] {
  const named = endpoints.filter(({ host }) => host !== null);
  return named.map((endpoint) => formatEndpoint({ ...endpoint, listener: '' }).slice(3));
}

function describesUs(data: Buffer | null, path: string, broker: BrokerRegistration): boolean {
  const theirs = layout08.broker.tryParse(data, path, () => {});
  if (theirs === null) return false;
  return addressesOf(theirs).join() === addressesOf(broker).join();
}

function orNull(error: unknown): null {
  if (isZkError(error, 'NO_NODE') || isZkError(error, 'BAD_VERSION')) return null;
  throw error;
}

async function goneOrOver(
  client: Client,
  path: string,
  clock: Clock,
  waitMs: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  const over = deferred();
  const watches = new OneShotWatches(client);
  const timer = clock.after(waitMs, () => over.resolve());
  const stopHearing = signal && onAbort(signal, () => over.resolve());
  try {
    const watch = watches.on('data', path, () => over.resolve());
    if ((await client.exists(path, { watch })) !== null) await over.promise;
  } finally {
    timer.cancel();
    stopHearing?.();
    await watches.close();
  }
}
