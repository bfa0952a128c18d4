/**
 * A watch that stays, and a list that is kept by its events alone: read when the watch was set, then
 * changed by each event and never read again until `onArmed` says so.
 *
 * What must hold: a server tells of a change before it shows it on the same link. So while the watch
 * stands, whatever a list shows that was asked for at any moment is known by then: each difference of
 * which no event has told is an event that was missed. In one session events come in the order of
 * transactions, each once. After the faults the watch stands again, and the list is right. Each name is
 * made once and deleted once, so that nothing that comes later hides what was missed.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { type Client, isZkError, type WatchEvent } from '../../src/client/index.ts';
import { PersistentWatcher } from '../../src/recipes/index.ts';
import { Copies } from './views.ts';
import type { Hand, Workload } from './workload.ts';

const root = '/watched';
/** So many rounds a name lives. */
const lifeRounds = 15;
const equalWithinMs = 20_000;

class Follower {
  readonly #client: Client;
  readonly #tell: Hand['tell'];
  readonly #watcher: PersistentWatcher;
  #names = new Set<string>();
  /** By events since the list was last asked for, and whether they are there. */
  readonly #touched = new Map<string, boolean>();
  /** Which time the watch was set it stands by; null without a link. */
  #armed: number | null = null;
  #times = 0;
  #readAt: number | null = null;
  #last = { text: '', zxid: -1n };

  constructor(client: Client, tell: Hand['tell']) {
    this.#client = client;
    this.#tell = tell;
    client.on('state', this.#onState);
    this.#watcher = new PersistentWatcher(client, root, (event) => this.#heard(event), {
      recursive: true,
      onArmed: () => {
        this.#times += 1;
        this.#armed = this.#times;
      },
      onEnd: (error) => tell('ended', `the watch has ended: ${error}`),
    });
  }

  get ready(): Promise<void> {
    return this.#watcher.ready;
  }

  /** Asks for the list, and compares, or takes it over after the watch was set. False: not this time. */
  async compare(): Promise<boolean> {
    const armed = this.#armed;
    this.#touched.clear();
    const there = new Set(await this.#client.children(root));
    if (armed === null || armed !== this.#armed) return false;
    if (armed !== this.#readAt) {
      this.#readAt = armed;
      this.#names = there;
      for (const [name, isThere] of this.#touched) {
        if (isThere) there.add(name);
        else there.delete(name);
      }
      return false;
    }
    const all = [...new Set([...there, ...this.#names])];
    const missed = all.filter(
      (name) => there.has(name) !== this.#names.has(name) && !this.#touched.has(name),
    );
    for (const name of missed) {
      const what = there.has(name) ? 'is there' : 'is gone';
      this.#tell('missed', `${name} ${what}, and no event has told of it`);
    }
    if (missed.length > 0) this.#readAt = null; // told once
    this.#tell('equal');
    return true;
  }

  async close(): Promise<void> {
    this.#client.off('state', this.#onState);
    await this.#watcher.close();
  }

  readonly #onState = () => {
    if (this.#client.state.name !== 'connected') this.#armed = null;
  };

  #heard({ type, path, zxid }: WatchEvent): void {
    this.#tell('change', 1);
    const text = `${type} ${path} at ${zxid}`;
    const last = this.#last;
    if (zxid !== null && zxid < last.zxid) this.#tell('older', `${text} came after ${last.zxid}`);
    if (text === last.text) this.#tell('twice', `${text} came twice`);
    this.#last = { text, zxid: zxid ?? last.zxid };
    if (type !== 'created' && type !== 'deleted') return;
    const name = path.slice(root.length + 1);
    this.#touched.set(name, type === 'created');
    if (type === 'created') this.#names.add(name);
    else this.#names.delete(name);
  }
}

export const watchedWorkloads: Readonly<Record<string, Workload>> = {
  persistentWatcher: {
    async begin({ client, name, tell }) {
      await client.create(root).catch((error) => {
        if (!isZkError(error, 'NODE_EXISTS')) throw error;
      });
      const follower = new Follower(client, tell);
      await follower.ready;
      let rounds = 0;
      return {
        async round() {
          rounds += 1;
          await client.create(`${root}/${name}-${rounds}`);
          if (rounds > lifeRounds) {
            await client.delete(`${root}/${name}-${rounds - lifeRounds}`).catch((error) => {
              if (!isZkError(error, 'NO_NODE')) throw error; // its create may have failed
            });
          }
          if (rounds % 3 === 0) await follower.compare();
          await delay(10);
        },
        async finish() {
          const deadlineMs = performance.now() + equalWithinMs;
          while (!(await follower.compare())) {
            if (performance.now() > deadlineMs) return tell('missed', 'the watch does not stand');
            await delay(20);
          }
        },
        close: () => follower.close(),
      };
    },
    judge: () => new Copies(),
  },
};
