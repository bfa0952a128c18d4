/**
 * The clients that are compared, each behind the same four verbs, loaded as its users load it.
 *
 * In: a client's name, where it lies, a server's address. Out: a connected client, or why there is none.
 */

export interface Contender {
  get(path: string): Promise<number>;
  set(path: string, data: Buffer): Promise<unknown>;
  create(path: string, data: Buffer): Promise<unknown>;
  close(): Promise<unknown>;
  /** Only ours has it: it cleans up behind all of them. */
  deleteBelow?(path: string): Promise<unknown>;
}

type Open = (module: string, address: string) => Promise<Contender>;

const sessionTimeoutMs = 30_000;

async function drover(module: string, address: string): Promise<Contender> {
  const { connect } = await import(module);
  const client = await connect(address, { sessionTimeoutMs });
  return {
    get: async (path) => (await client.get(path)).data.length,
    set: (path, data) => client.set(path, data),
    create: (path, data) => client.create(path, { data }),
    close: () => client.close(),
    deleteBelow: async (path) => {
      for (const name of await client.children(path)) {
        if (name.startsWith('c')) await client.deleteRecursive(`${path}/${name}`);
      }
    },
  };
}

/** Its promises, which are what it exports; its callbacks are a layer below. */
async function native(module: string, address: string): Promise<Contender> {
  const { default: ZooKeeper } = await import(module);
  const client = new ZooKeeper({
    connect: address,
    timeout: sessionTimeoutMs,
    debug_level: 1, // errors alone
  });
  await new Promise<void>((resolve, reject) => {
    client.connect((error: Error | null) => (error ? reject(error) : resolve()));
  });
  return {
    get: async (path) => (await client.get(path, false))[1].length,
    set: (path, data) => client.set(path, data, -1),
    create: (path, data) => client.create(path, data, 0),
    close: async () => client.close(),
  };
}

async function nodeClient(module: string, address: string): Promise<Contender> {
  const { default: zookeeper } = await import(module);
  const client = zookeeper.createClient(address, { sessionTimeout: sessionTimeoutMs });
  await new Promise<void>((resolve) => {
    client.once('connected', resolve);
    client.connect();
  });
  return {
    get: (path) =>
      new Promise((resolve, reject) => {
        client.getData(path, (error: Error | null, data: Buffer) =>
          error ? reject(error) : resolve(data.length),
        );
      }),
    set: (path, data) =>
      new Promise((resolve, reject) => {
        client.setData(path, data, -1, (error: Error | null, stat: unknown) =>
          error ? reject(error) : resolve(stat),
        );
      }),
    create: (path, data) =>
      new Promise((resolve, reject) => {
        client.create(path, data, (error: Error | null, made: string) =>
          error ? reject(error) : resolve(made),
        );
      }),
    close: async () => client.close(),
  };
}

export const contenders: Readonly<Record<string, Open>> = {
  drover,
  zookeeper: native,
  'node-zookeeper-client': nodeClient,
};
