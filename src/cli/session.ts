/**
 * One session for one or many commands: opened when first needed, closed once.
 *
 * In: where to go, and what to say when the link is lost. Out: a connected `Client`. `reconnect` and
 * `disconnect` are zkCli's `connect` and `close`: after a `disconnect` nothing is opened by itself.
 */

import { type Client, type ClientOptions, connect } from '../client/index.ts';
import type { Target } from './command.ts';
import { CommandError } from './exit-codes.ts';
import { NotingClient, type WriteNotes } from './write-notes.ts';

/** A connection that is lost for less is not told of. */
const lossToldAfterMs = 250;

export interface SessionHooks {
  /** Told of links lost and found, and of sessions that ended. */
  readonly onChange?: (sentence: string) => void;
  /** A shell outlives its session: a new one is begun. */
  readonly renew?: boolean;
  /** What its clients write is noted, for the command that runs now (`notes`). */
  readonly areWritesNoted?: boolean;
}

export class CliSession {
  readonly #resolve: () => Promise<Target>;
  readonly #hooks: SessionHooks;
  #target: Promise<Target> | undefined;
  #client: Promise<Client> | undefined;
  #isDisconnected = false;
  /** Of the command that runs now; undefined: nobody asks. */
  notes: WriteNotes | undefined;

  constructor(resolve: () => Promise<Target>, hooks: SessionHooks = {}) {
    this.#resolve = resolve;
    this.#hooks = hooks;
  }

  target(): Promise<Target> {
    this.#target ??= this.#resolve();
    return this.#target;
  }

  /** The client if there is one, for prompts and completion: nothing is opened. */
  async opened(): Promise<Client | null> {
    return (await this.#client?.catch(() => null)) ?? null;
  }

  async client(signal: AbortSignal): Promise<Client> {
    if (this.#isDisconnected) {
      throw new CommandError('unreachable', 'Not connected; connect [host:port] opens a session');
    }
    this.#client ??= this.#open(signal);
    try {
      return await this.#client;
    } catch (error) {
      this.#client = undefined; // the next line may have more luck
      throw error;
    }
  }

  async connect(
    signal: AbortSignal,
    servers?: string,
    options: ClientOptions = {},
  ): Promise<Client> {
    const target = await this.target();
    return this.open(servers ?? target.servers, { ...target.client, ...options, signal });
  }

  /** As `connect`, anywhere and with nothing but these options. */
  async open(
    servers: string,
    options: ClientOptions & { readonly signal: AbortSignal },
  ): Promise<Client> {
    if (!this.#hooks.areWritesNoted) return connect(servers, options);
    const { signal, ...rest } = options;
    signal.throwIfAborted();
    const client = new NotingClient(servers, rest, () => this.notes);
    try {
      return await client.connected({ signal, timeoutMs: rest.connectTimeoutMs ?? 15_000 });
    } catch (error) {
      await client.close();
      throw error;
    }
  }

  /** To where it was, or to another place from now on. */
  async reconnect(signal: AbortSignal, elsewhere?: Target): Promise<void> {
    await this.close();
    if (elsewhere !== undefined) this.#target = Promise.resolve(elsewhere);
    this.#isDisconnected = false;
    await this.client(signal);
  }

  async disconnect(): Promise<void> {
    await this.close();
    this.#isDisconnected = true;
  }

  async close(): Promise<void> {
    const client = await this.opened();
    this.#client = undefined;
    await client?.close();
  }

  async #open(signal: AbortSignal): Promise<Client> {
    const client = await this.connect(signal, undefined, { renew: this.#hooks.renew === true });
    const { onChange } = this.#hooks;
    if (onChange === undefined) return client;
    let server = client.server;
    let isTold = false;
    client.on('state', ({ name }, before) => {
      if (name === 'suspended') {
        // A connection that is back at once, as after an op that an older server does not know, is no news.
        const tell = () => {
          if (isTold || client.state.name !== 'suspended') return;
          isTold = true;
          onChange(`lost ${server ?? 'the server'}; looking for another`);
        };
        setTimeout(tell, lossToldAfterMs).unref();
      }
      if (name === 'connected' && before.name !== 'connected') {
        server = client.server;
        if (isTold) onChange(`connected to ${server ?? 'a server'} again`);
        isTold = false;
      }
      if (name === 'expired') onChange('the session expired; its ephemeral nodes are gone');
    });
    return client;
  }
}
