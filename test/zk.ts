/**
 * The ZooKeeper that a story runs on: our own, in this process, or, under `npm run test:peers`, a
 * real one that is named by the project's `peer`. The story does not know which.
 *
 * Every client comes through a link that can be cut. On a real server, which all stories share, each
 * story has a node of its own as chroot, and takes it away at the end.
 */

import { inject, TestRunner } from 'vitest';
import { type Client, type ClientOptions, connect } from '../src/client/index.ts';
import { Link, startTestServer } from '../src/testing/index.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The real server that stories run on. None: ours. */
    peer: { readonly name: string; readonly port: number; readonly version: string } | undefined;
  }
}

export interface Zk {
  /** Between every client that `connect` makes and the server. */
  readonly link: Link;
  /** host:port/chroot through the link, for whoever connects by itself. */
  readonly address: string;
  /** As `address`, past the link. */
  readonly directAddress: string;
  readonly version: string;
  readonly isOurs: boolean;
  connect(options?: ClientOptions): Promise<Client>;
  /** A client that no cut reaches: to look on from outside. */
  witness(options?: ClientOptions): Promise<Client>;
  /** Ends the client's session on the server, which the client learns when it is next told. */
  expire(client: Client): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

let stories = 0;

/** What a story is about, where not all releases have it: on older ones it is left out, and says so. */
export interface Needs {
  /** The first release that has it. */
  readonly since?: string;
  readonly what?: string;
}

/**
 * Watches that the server keeps. Before 3.6 the client makes do with one-shot watches, which tell a round
 * trip later, and of several changes in a row as one.
 */
export const persistentWatches: Needs = { since: '3.6', what: 'persistent watches' };

/** Whether `version` is of an older line than `line`, as 3.8.0 is than 3.9. */
export function isBefore(version: string, line: string): boolean {
  const minor = (text: string) => Number(text.split('.')[1]);
  return minor(version) < minor(line);
}

export async function startZk({ since = '3.4', what }: Needs = {}): Promise<Zk> {
  const peer = inject('peer');
  if (peer !== undefined && isBefore(peer.version, since)) {
    TestRunner.getCurrentTest()!.context.skip(`needs ZooKeeper ${since}${what ? `: ${what}` : ''}`);
  }
  const server = peer
    ? undefined
    : await startTestServer({ tickTimeMs: 500, extendedTypesEnabled: true, fourLetterWords: '*' });
  const port = peer?.port ?? server!.port;
  const link = await Link.to({ host: '127.0.0.1', port });
  const chroot = `/story-${process.pid}-${stories++}-${Date.now().toString(36)}`;
  const direct = `127.0.0.1:${port}`;
  const keeper = await connect(direct, { sessionTimeoutMs: 30_000 });
  await keeper.create(chroot);
  const clients: Client[] = [];
  let expiring = 0;
  const open = async (address: string, options: ClientOptions) => {
    const client = await connect(address + chroot, { sessionTimeoutMs: 10_000, ...options });
    clients.push(client);
    return client;
  };
  return {
    link,
    address: link.address + chroot,
    directAddress: direct + chroot,
    version: peer?.version ?? '3.9.5',
    isOurs: peer === undefined,
    connect: (options = {}) => open(link.address, options),
    witness: (options = {}) => open(direct, options),
    async expire(client) {
      const identity = client.identity!;
      // Who is back on its session as it ends would hear of its nodes first, as if somebody had deleted them.
      expiring += 1;
      link.hold();
      try {
        // An owner who was on its way back takes it from the thief: until there is none to take.
        for (;;) {
          const thief = await connect(direct, { identity }).catch(() => null);
          if (thief === null) return;
          await thief.close();
        }
      } finally {
        expiring -= 1;
        if (expiring === 0) link.admit();
      }
    },
    async [Symbol.asyncDispose]() {
      link.heal();
      // Where a test has left them without a connection, nothing is gained by waiting for one.
      await Promise.all(clients.map((client) => client.close({ timeoutMs: 0 })));
      await keeper.deleteRecursive(chroot);
      await keeper.close();
      await link.close();
      await server?.close();
    },
  };
}

/** The ephemeral nodes of a client's session; servers before 3.6 cannot be asked for them. */
export async function ephemeralsOf(client: Client, prefix = '/'): Promise<string[]> {
  const found: string[] = [];
  for await (const { path, stat } of client.walk('/')) {
    if (stat.ephemeralOwner === client.sessionId && path.startsWith(prefix)) found.push(path);
  }
  return found;
}

/** The next state of this name, or the present one. */
export function reached(client: Client, name: Client['state']['name']): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (client.state.name !== name) return;
      client.off('state', look);
      resolve();
    };
    client.on('state', look);
    look();
  });
}
