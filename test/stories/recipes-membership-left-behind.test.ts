/** By the server's own count: whatever is closed, called off or broken off leaves no watch and no node. */

import { expect, test, vi } from 'vitest';
import { type Client, connect } from '../../src/client/index.ts';
import {
  Election,
  ElectionObserver,
  GroupMember,
  Machine,
  MachineMonitor,
  Membership,
  NotificationTopic,
  Partitioner,
  PersistentNode,
  PersistentWatcher,
  StaticElection,
} from '../../src/recipes/index.ts';
import { startTestServer, type TestServer } from '../../src/testing/index.ts';
import { fourLetterWord } from '../peers/four-letter-word.ts';

interface Life {
  close(): Promise<void>;
}

/** Each begins something that watches, and says when it does. */
const lives: Record<string, (client: Client, path: string) => Life & { begun?: Promise<unknown> }> =
  {
    'a persistent node': (client, path) => node(new PersistentNode(client, path)),
    'a persistent watcher': (client, path) => node(new PersistentWatcher(client, path, () => {})),
    'a membership': (client, path) => node(new Membership(client, path)),
    'a group member': (client, path) => node(new GroupMember(client, path, 'me')),
    'a machine': (client, path) => node(new Machine(client, { path, name: 'me' })),
    'a monitor': (client, path) => node(new MachineMonitor(client, { path })),
    'an observer': (client, path) => node(new ElectionObserver(client, path)),
    'a subscription': (client, path) => node(new NotificationTopic(client, path).subscribe('me')),
    'an election': (client, path) => campaign(new Election(client, path, { appointable: true })),
    'a static election': (client, path) => {
      return campaign(new StaticElection(client, path, { appointable: true }));
    },
    'a partitioner': (client, path) => {
      const shards = ['a', 'b'];
      return node(new Partitioner(client, path, { name: 'me', shards, settleMs: 10 }));
    },
  };

function node(life: Life & { ready?: Promise<void> }) {
  life.ready?.catch(() => {}); // it may be closed before
  return { close: () => life.close(), ...(life.ready && { begun: life.ready }) };
}

function campaign(election: Election | StaticElection) {
  const run = (async () => {
    for await (const { signal } of election) {
      if (signal.aborted) continue;
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    }
  })();
  return {
    begun: vi.waitFor(() => expect(election.isLeading).toBe(true), 5_000).catch(() => {}),
    close: async () => {
      await election.close();
      await run;
    },
  };
}

async function watches(server: TestServer): Promise<number> {
  const answer = await fourLetterWord(server.port, 'wchs');
  return Number(/Total watches:(\d+)/.exec(answer)![1]);
}

test.each(Object.keys(lives))(
  '%s leaves nothing behind, closed at rest or at once',
  async (name) => {
    await using server = await startTestServer({ fourLetterWords: '*' });
    await using client = await connect(server.address);

    const rested = lives[name]!(client, '/rested');
    await rested.begun;
    await vi.waitFor(async () => expect(await watches(server)).toBeGreaterThan(0));
    await rested.close();
    await lives[name]!(client, '/hasty').close();

    await vi.waitFor(async () => {
      expect(await client.getEphemerals()).toEqual([]);
      expect(await watches(server)).toBe(0);
    });
  },
);
