/**
 * Dubbo's interface registry: the same nodes that Java's providers and consumers make and watch.
 *
 *   <root>/<service>/<category>/<URL, encoded>    ephemeral, or persistent with dynamic=false
 *
 * The nodes above are persistent: Dubbo remembers that it has made them, and never makes them again. A
 * registration belongs to the current session: one that an earlier session left behind is deleted and
 * made anew, else it would go with that session and the provider be gone for good (apache/dubbo#5125).
 * After an expiry it is made again, given a client with `renew`.
 */

import { type CallOptions, type Client, checkClient, isZkError } from '../client/index.ts';
import { childOf } from '../protocol/index.ts';
import { type Clock, checkOptions, unlessAborted } from '../support/index.ts';
import { checkNodePath } from './cache-arguments.ts';
import { childrenOrNone } from './children-or-none.ts';
import { Deadline } from './deadline.ts';
import { DubboMonitor } from './dubbo-monitor.ts';
import type { DubboProblem } from './dubbo-service.ts';
import { DubboSubscription } from './dubbo-subscription.ts';
import {
  categoriesOf,
  type DubboUrl,
  decodeDubbo,
  dubboNodeName,
  encodeDubbo,
  isDubboMatch,
  parseDubboUrl,
  serviceOf,
} from './dubbo-url.ts';
import { dubboTable } from './option-tables.ts';
import { PersistentNode } from './persistent-node.ts';

export interface DubboOptions {
  /** Dubbo's `group` of the registry, as a path. `/dubbo` unless said. */
  readonly root?: string;
  /** Told of every node whose name is no URL. */
  readonly onProblem?: (problem: DubboProblem) => void;
  readonly clock?: Clock;
}

/** A URL that is registered, until it is closed. */
export interface DubboRegistration {
  readonly url: DubboUrl;
  readonly path: string;
  /** Takes it out. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** How often a node is tried again whose reply was lost. */
const triesMax = 10;

export class DubboRegistry {
  readonly #client: Client;
  readonly #root: string;
  readonly #options: DubboOptions;
  readonly #open = new Set<{ close(): Promise<void> }>();

  constructor(client: Client, options: DubboOptions = {}) {
    checkClient('DubboRegistry', client);
    checkOptions('DubboRegistry', options, dubboTable);
    const { root = '/dubbo' } = options;
    checkNodePath('root', root);
    this.#client = client;
    this.#root = root;
    this.#options = options;
  }

  /** Resolves once the URL can be found. Its first category is where: `providers` unless said. */
  async register(url: DubboUrl | string, wait: CallOptions = {}): Promise<DubboRegistration> {
    wait.signal?.throwIfAborted();
    const parsed = typeof url === 'string' ? parseDubboUrl(url) : url;
    const above = childOf(this.#servicePath(parsed), categoriesOf(parsed)[0] ?? 'providers');
    const path = childOf(above, dubboNodeName(parsed));
    const deadline = new Deadline(wait, this.#options.clock);
    try {
      await this.#ensure(above, deadline.signal);
      if (parsed.parameters.dynamic === 'false') {
        return await this.#registerStatic(parsed, path, deadline.signal);
      }
      return await this.#registerEphemeral(parsed, path, deadline.signal);
    } finally {
      deadline.stop();
    }
  }

  async #registerStatic(
    url: DubboUrl,
    path: string,
    signal: AbortSignal,
  ): Promise<DubboRegistration> {
    // Not called off on its way: nobody could tell then whether the node is there.
    const isNew = await this.#ensure(path);
    const close = () => this.#client.discard(path);
    if (!signal.aborted) return registration(url, path, close);
    if (isNew) await close();
    throw signal.reason;
  }

  async #registerEphemeral(
    url: DubboUrl,
    path: string,
    signal: AbortSignal,
  ): Promise<DubboRegistration> {
    const { clock } = this.#options;
    const node = new PersistentNode(this.#client, path, {
      whenTaken: 'replace',
      ...(clock && { clock }),
    });
    this.#open.add(node);
    const close = async () => {
      this.#open.delete(node);
      await node.close();
    };
    try {
      await unlessAborted(node.ready, signal);
    } catch (error) {
      await close();
      throw error;
    }
    return registration(url, path, close);
  }

  /** What matches a consumer's URL, in all categories that it names, asked of the server now. */
  async lookup(consumer: DubboUrl | string, options: CallOptions = {}): Promise<DubboUrl[]> {
    const wanted = typeof consumer === 'string' ? parseDubboUrl(consumer) : consumer;
    const service = this.#servicePath(wanted);
    const found: DubboUrl[] = [];
    for (const category of categoriesOf(wanted)) {
      const path = childOf(service, category);
      for (const name of (await childrenOrNone(this.#client, path, options)).sort()) {
        const url = this.#parse(name, childOf(path, name));
        const parameters = { ...url?.parameters, category: url?.parameters.category || category };
        if (url !== null && isDubboMatch(wanted, { ...url, parameters })) found.push(url);
      }
    }
    return found;
  }

  /** Follows what a consumer's URL asks for. Makes the nodes above, as Dubbo does. */
  async subscribe(
    consumer: DubboUrl | string,
    options: CallOptions = {},
  ): Promise<DubboSubscription> {
    const wanted = typeof consumer === 'string' ? parseDubboUrl(consumer) : consumer;
    const service = this.#servicePath(wanted);
    for (const category of categoriesOf(wanted)) {
      await this.#ensure(childOf(service, category), options.signal);
    }
    const { clock, onProblem } = this.#options;
    const subscription: DubboSubscription = new DubboSubscription(this.#client, service, wanted, {
      clock,
      onProblem,
      onClose: () => void this.#open.delete(subscription),
    });
    this.#open.add(subscription);
    return subscription;
  }

  /** The services that there are, or were: their nodes stay. */
  async services(options: CallOptions = {}): Promise<string[]> {
    const names = await childrenOrNone(this.#client, this.#root, options);
    return names.map((name) => decodeDubbo(name)).sort();
  }

  /** Who provides and who consumes a service. Makes no node. */
  monitor(service: string): DubboMonitor {
    const { clock, onProblem } = this.#options;
    const path = childOf(this.#root, encodeDubbo(service));
    checkNodePath('service', path);
    const monitor: DubboMonitor = new DubboMonitor(this.#client, path, service, {
      clock,
      onProblem,
      onClose: () => void this.#open.delete(monitor),
    });
    this.#open.add(monitor);
    return monitor;
  }

  /** Takes out what lives with the session, and ends all that follows. What is static stays. */
  async close(): Promise<void> {
    await Promise.all([...this.#open].map((one) => one.close()));
    this.#open.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #servicePath(url: DubboUrl): string {
    const path = childOf(this.#root, encodeDubbo(serviceOf(url)));
    checkNodePath('url', path);
    return path;
  }

  #parse(name: string, path: string): DubboUrl | null {
    try {
      return parseDubboUrl(decodeDubbo(name));
    } catch (error) {
      this.#options.onProblem?.({ path, error: error as Error });
      return null;
    }
  }

  /** Makes a persistent node, and those above it. True when it was not there. */
  async #ensure(path: string, signal?: AbortSignal): Promise<boolean> {
    for (let tries = 0; ; tries++) {
      try {
        await this.#client.create(path, '', { parents: true, ...(signal && { signal }) });
        return true;
      } catch (error) {
        if (isZkError(error, 'NODE_EXISTS')) return false;
        // It may be there by now; then the next try says so.
        if (!isZkError(error, 'CONNECTION_LOSS') || tries === triesMax) throw error;
      }
    }
  }
}

function registration(url: DubboUrl, path: string, close: () => Promise<void>): DubboRegistration {
  return { url, path, close, [Symbol.asyncDispose]: close };
}
