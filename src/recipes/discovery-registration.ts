/**
 * One instance, registered: its node is there for as long as this is open.
 *
 * The node belongs to the current session. Where an ephemeral node of an earlier session still stands
 * at its path (a process that restarts faster than its old session expires finds one), that one is
 * deleted and the node made anew: writing into it would have it go with the session that is about to
 * expire. After an expiry (`renew` on the client) and after a deletion by somebody it is made again.
 */

import type { Client } from '../client/index.ts';
import { childOf } from '../protocol/index.ts';
import type { Clock } from '../support/index.ts';
import { type FormatOptions, formatInstance, type ServiceInstance } from './discovery-instance.ts';
import { PersistentNode, type PersistentNodeState } from './persistent-node.ts';

const modes = {
  DYNAMIC: 'ephemeral',
  DYNAMIC_SEQUENTIAL: 'ephemeralSequential',
  STATIC: 'persistent',
  PERMANENT: 'persistent',
} as const;

export interface RegistrationSetting extends FormatOptions {
  readonly clock?: Clock | undefined;
  readonly onClose?: () => void;
}

export class Registration<P = unknown> {
  readonly #node: PersistentNode;
  readonly #setting: RegistrationSetting;
  #instance: ServiceInstance<P>;

  /** `ServiceDiscovery.register()` makes one. */
  constructor(
    client: Client,
    servicePath: string,
    instance: ServiceInstance<P>,
    setting: RegistrationSetting,
  ) {
    this.#instance = instance;
    this.#setting = setting;
    this.#node = new PersistentNode(client, childOf(servicePath, instance.id), {
      mode: modes[instance.serviceType],
      data: formatInstance(instance, setting),
      whenTaken: 'replace',
      ...(setting.clock && { clock: setting.clock }),
    });
  }

  get instance(): ServiceInstance<P> {
    return this.#instance;
  }

  /** `present` when it can be found; `failed`, with the error, when it never will be again. */
  get state(): PersistentNodeState {
    return this.#node.state;
  }

  /** Where its node is, or was last. Undefined before it was made. */
  get path(): string | undefined {
    return this.#node.path;
  }

  get ready(): Promise<void> {
    return this.#node.ready;
  }

  /** Other facts of the same instance: name, id and type stay. */
  async update(
    change: Partial<Omit<ServiceInstance<P>, 'name' | 'id' | 'serviceType'>>,
  ): Promise<void> {
    const { name, id, serviceType } = this.#instance;
    const instance = { ...this.#instance, ...change, name, id, serviceType };
    const text = formatInstance(instance, this.#setting);
    this.#instance = instance;
    await this.#node.set(text);
  }

  /** Takes the instance out. */
  async close(): Promise<void> {
    this.#setting.onClose?.();
    await this.#node.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
