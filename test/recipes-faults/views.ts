/**
 * What is kept for a process as long as it lives, and what it sees of others: members, services, copies.
 *
 * What must hold: a node is made once for each session, and after the faults it is owned by the session
 * that its worker has; a copy is equal to what the server has once nobody writes, and never showed an
 * older state of a node after a newer one.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { isZkError } from '../../src/client/index.ts';
import { Cache, Membership, ServiceDiscovery } from '../../src/recipes/index.ts';
import { type Asked, Judge, type Situation, type Workload } from './workload.ts';

/** A node of each worker's own. */
class Owned extends Judge {
  readonly #pathOf: (worker: string) => string;
  readonly #births = new Set<string>();

  constructor(pathOf: (worker: string) => string) {
    super();
    this.#pathOf = pathOf;
  }

  override hear({ worker, args: [session] }: Asked): void {
    const birth = `${worker} in session ${session}`;
    if (this.#births.has(birth)) this.broken.push(`${birth}: made twice`);
    this.#births.add(birth);
    this.count('births');
  }

  override async isWell({ witness, sessions }: Situation): Promise<boolean> {
    for (const [worker, session] of sessions) {
      const stat = await witness.exists(this.#pathOf(worker));
      if (stat?.ephemeralOwner !== session) return false;
    }
    return true;
  }
}

export class Copies extends Judge {
  override hear({ worker, what, args }: Asked): void {
    if (what === 'change') this.count('changes', args[0]);
    else if (what === 'equal') this.count('equal');
    else this.broken.push(`${worker}: ${args.join(' ')}`);
  }
}

const keys = 12;
const equalWithinMs = 20_000;

export const viewWorkloads: Readonly<Record<string, Workload>> = {
  membership: {
    async begin({ client, name, tell }) {
      const members = new Membership(client, '/members');
      const node = await members.join(name);
      void (async () => {
        for await (const { sessionId } of node) tell('birth', sessionId);
      })();
      return {
        async round() {
          await client.get(`/members/${name}`);
          await delay(5);
        },
        close: () => members.close(),
      };
    },
    judge: () => new Owned((worker) => `/members/${worker}`),
  },

  discovery: {
    async begin({ client, name }) {
      const discovery = new ServiceDiscovery(client, '/services');
      await discovery.register({ name: 'faults', id: name, address: '127.0.0.1', port: 1 });
      return {
        async round() {
          await discovery.instances('faults');
          await delay(5);
        },
        close: () => discovery.close(),
      };
    },
    judge: () => new Owned((worker) => `/services/faults/${worker}`),
  },

  cache: {
    async begin({ client, name, tell }) {
      while (!(await client.exists('/copied'))) {
        await client.create('/copied').catch((error) => {
          if (!isZkError(error) || !(error.code === 'NODE_EXISTS' || error.outcomeUnknown))
            throw error;
        });
      }
      const cache = new Cache(client, '/copied');
      await cache.ready;
      const seen = new Map<string, bigint>();
      void (async () => {
        for await (const { type, path, node } of cache) {
          const before = seen.get(path) ?? -1n;
          const { czxid, mzxid } = node.stat;
          const isOlder = type === 'removed' ? mzxid < before : mzxid <= before && type !== 'added';
          if (isOlder || (type === 'added' && czxid <= before)) {
            tell('older', `${type} ${path} at ${mzxid} was shown after ${before}`);
          }
          seen.set(path, mzxid);
          tell('change', 1);
        }
      })();
      let writes = 0;
      const write = async () => {
        writes += 1;
        const path = `/copied/${(writes * 7 + name.length) % keys}`;
        if (writes % 5 === 0) await client.delete(path);
        else if (writes % 2 === 0) await client.set(path, `${name} ${writes}`);
        else await client.create(path, `${name} ${writes}`);
      };
      const difference = async () => {
        const there = new Map<string, string>();
        for await (const { path } of client.walk('/copied')) {
          const { data, stat } = await client.get(path);
          there.set(path, `${stat.czxid} ${stat.mzxid} ${data}`);
        }
        const here = new Map<string, string>();
        for (const { path, stat, data } of cache.nodes()) {
          here.set(path, `${stat.czxid} ${stat.mzxid} ${data}`);
        }
        const all = new Set([...there.keys(), ...here.keys()]);
        return [...all].filter((path) => there.get(path) !== here.get(path));
      };
      return {
        async round() {
          await write().catch((error) => {
            if (!isZkError(error, 'NODE_EXISTS', 'NO_NODE')) throw error;
          });
          await delay(2);
        },
        async finish() {
          const deadlineMs = performance.now() + equalWithinMs;
          for (;;) {
            const differs = await difference();
            if (differs.length === 0) return tell('equal');
            if (performance.now() > deadlineMs) return tell('differs', ...differs);
            await delay(20);
          }
        },
        close: () => cache.close(),
      };
    },
    judge: () => new Copies(),
  },
};
