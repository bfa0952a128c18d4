/**
 * A ZooKeeper server in this process: listens, and hands each link to the engine.
 *
 * In: options. Out: a server that is ready, its port known. `failed` resolves if it had to stop by
 * itself, which it does rather than acknowledge what the log may not hold.
 */

import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import {
  createServer as createTlsServer,
  type TLSSocket,
  type TlsOptions,
  type Server as TlsServer,
} from 'node:tls';
import { realFileSystem, versionFolder } from '../storage/index.ts';
import {
  checkOptions,
  deferred,
  delayMaxMs,
  monotonicClock,
  silentLogger,
} from '../support/index.ts';
import { DiskSpace, freeBytesOf } from './disk-space.ts';
import { Door, UnsecuredLinks } from './door.ts';
import { Engine } from './engine.ts';
import { directoryFacts, RestoreStats, type ServerFacts, type StorageFacts } from './facts.ts';
import { answerWord, readWhitelist } from './four-letter-words.ts';
import { limitsOf } from './limits.ts';
import { openFilesMax, roomForLinks } from './open-files.ts';
import { serverTable } from './option-tables.ts';
import type { ServerOptions } from './options.ts';
import { SessionPasswords } from './passwords.ts';
import { openPersistence, type Persistence } from './persistence.ts';
import { Reaper } from './reaper.ts';
import { Restoration } from './restore.ts';
import { addressOf } from './socket-wire.ts';
import { Tally } from './stats.ts';
import { memoryLog } from './txn-log.ts';
import { isDisproved, servePlain, serveTls } from './wire.ts';

export interface RunningServer {
  readonly host: string;
  readonly port: number;
  /** Where TLS is spoken, if it is. */
  readonly securePort: number | undefined;
  /** host:port, as a connection string has it. */
  readonly address: string;
  /** Another one after a restore. */
  readonly engine: Engine;
  /** What is kept on disk, where anything is. Another one after a restore. */
  readonly persistence: Persistence | undefined;
  /** For who shows the server: metrics, the admin server. */
  readonly facts: ServerFacts;
  /** Resolves with the reason if the server stopped by itself. It has closed every link by then. */
  readonly failed: Promise<Error>;
  /** New certificates: for links from now on. Those that are open stay as they are. */
  setTls(options: TlsOptions): void;
  /** Takes no more requests, lets what is under way land, closes links and log. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** From one start to its stop. A restore ends one and begins another behind the same ports. */
interface Life {
  readonly engine: Engine;
  readonly persistence: Persistence | undefined;
  stop(): Promise<void>;
}

/** Less room than for so many is told. */
const fewLinks = 1_000;

/** With what is no number nobody would be taken in, or containers looked through without a pause. */
function checkTimes(options: ServerOptions): void {
  for (const name of [
    'tickTimeMs',
    'minSessionTimeoutMs',
    'maxSessionTimeoutMs',
    'reapIntervalMs',
  ] as const) {
    const value = options[name];
    if (value === undefined || (typeof value === 'number' && value > 0)) continue;
    throw new TypeError(`${name} has to be a number above 0, and is ${value}`);
  }
}

export async function startServer(options: ServerOptions = {}): Promise<RunningServer> {
  checkOptions('startServer', options, serverTable);
  const { host = '127.0.0.1', tls } = options;
  const { inMemory } = options;
  const dataDir = inMemory ? undefined : options.dataDir;
  if (dataDir === undefined && options.log === undefined && inMemory !== true) {
    throw new Error('a server needs a dataDir to write to, or inMemory: true to keep nothing');
  }
  // What is wrong with the options is said before anything is opened.
  const { diskFreeBytesMin } = limitsOf(options.limits);
  checkTimes(options);
  const clock = options.clock ?? monotonicClock;
  const tickTimeMs = options.tickTimeMs ?? 2_000;
  const dbinittime = new Tally();
  const minSessionTimeoutMs = options.minSessionTimeoutMs ?? 2 * tickTimeMs;
  const maxSessionTimeoutMs = options.maxSessionTimeoutMs ?? 20 * tickTimeMs;
  const whitelist = readWhitelist(options.fourLetterWords ?? '');
  const failed = deferred<Error>();
  let onFailed: (error: Error) => void = () => {};

  // Where nothing is kept, or on none of the system's disks, nobody can tell how full they are.
  const watchesDisk =
    dataDir !== undefined && (options.fs === undefined || options.diskFreeBytes !== undefined);
  const { diskFreeBytes = freeBytesOf } = options;
  const snapshotRoomBytes =
    watchesDisk && diskFreeBytesMin !== Infinity
      ? async () => (await diskFreeBytes(dataDir).catch(() => Infinity)) - diskFreeBytesMin
      : undefined;

  const memoryPasswords = new SessionPasswords(options.sessionPasswords ?? 'secret');
  const begin = async (): Promise<Life> => {
    const openedMs = clock.nowMs();
    const persistence =
      dataDir === undefined
        ? undefined
        : await openPersistence({ ...options, dataDir, clock, snapshotRoomBytes });
    dbinittime.add(clock.nowMs() - openedMs);
    const log = options.log ?? persistence?.log ?? memoryLog;
    const engine: Engine = new Engine({
      fourLetterWord: (word, rest) => answerWord(facts, whitelist, word, rest),
      ...options,
      passwords: options.passwords ?? persistence?.passwords ?? memoryPasswords,
      tree: options.tree ?? persistence?.tree,
      log,
      clock,
      tickTimeMs,
      minSessionTimeoutMs,
      maxSessionTimeoutMs,
    });
    engine.stats.digestMismatches = persistence?.digests.mismatches ?? 0;
    const reaper = new Reaper(
      engine.tree,
      clock,
      {
        intervalMs: options.reapIntervalMs ?? 60_000,
        perMinuteMax: options.reapPerMinuteMax ?? 10_000,
        neverUsedMs: options.reapNeverUsedMs ?? 0,
      },
      (path) => engine.reap(path),
    );
    reaper.start();
    let hasFailed = false;
    engine.onFailed((error) => {
      hasFailed = true;
      reaper.stop();
      // The log is let go of too: whoever starts next must find the directory free.
      void log
        .close()
        .catch(() => {})
        .then(() => onFailed(error));
    });
    const stop = async () => {
      reaper.stop();
      await engine.stop();
      for (const connection of [...engine.connections]) connection.close();
      if (!hasFailed) await persistence?.finalSnapshot();
      await log.close();
    };
    return { engine, persistence, stop };
  };

  let life = await begin();
  const startedMs = clock.nowMs();
  const disk =
    dataDir === undefined || !watchesDisk
      ? undefined
      : new DiskSpace({
          folders: [...new Set([dataDir, options.dataLogDir ?? dataDir])],
          freeBytesMin: life.engine.limits.diskFreeBytesMin,
          clock,
          logger: options.logger ?? silentLogger,
          freeBytes: options.diskFreeBytes,
          changed: (isLow) => {
            life.engine.refusesWrites = isLow;
          },
        });
  const followDisk = ({ engine }: typeof life) => {
    engine.refusesWrites = disk?.isLow ?? false;
    engine.takesDeletes = () => disk?.hasRoomForDeletes ?? true;
  };
  followDisk(life);
  await disk?.start();

  let restoring: Promise<number> | undefined;
  const stopping = new AbortController();
  const replace = async (restoration: Restoration): Promise<number> => {
    let zxid: number | undefined;
    let why: unknown;
    try {
      await life.stop();
      const { engine, persistence } = life;
      zxid = await restoration.write(
        Math.max(engine.lastZxid, Number(persistence!.lastDurableZxid)),
      );
    } catch (error) {
      why = error;
    }
    // With what was brought, or, where it could not be written, with what was there before.
    try {
      life = await begin();
      followDisk(life);
    } catch (error) {
      onFailed(error as Error);
      throw error;
    }
    if (zxid === undefined) throw why;
    return zxid;
  };
  const restore = async (upload: AsyncIterable<Uint8Array>): Promise<number> => {
    if (restoring !== undefined) throw new Error('another restore is under way');
    restoring = Restoration.read(until(upload, stopping.signal), {
      folder: join(dataDir!, versionFolder),
      fs: options.fs ?? realFileSystem,
      tree: {
        extendedTypes: options.extendedTypesEnabled ?? false,
        digest: options.digestEnabled ?? true,
      },
      compression: options.snapshotCompression,
    }).then((restoration) => {
      if (closing !== undefined || !life.engine.isServing) throw new Error('the server stops');
      return replace(restoration);
    });
    try {
      return await restoring;
    } finally {
      restoring = undefined;
    }
  };
  const storageFacts = (dataDir: string): StorageFacts => ({
    ...directoryFacts(dataDir, options.dataLogDir ?? dataDir),
    lastSnapshot: () => life.persistence!.lastSnapshot,
    takeSnapshot: () => life.persistence!.freshSnapshot(),
    restore,
    restores: new RestoreStats(),
    freeBytes: () => disk?.freeBytes ?? Infinity,
    get tallies() {
      return { ...life.persistence!.tallies, dbinittime };
    },
  });

  let port = 0;
  let securePort: number | undefined;
  const facts: ServerFacts = {
    ...{ clock, startedMs, tickTimeMs, minSessionTimeoutMs, maxSessionTimeoutMs },
    storage:
      options.storage ??
      (dataDir === undefined || options.log !== undefined ? undefined : storageFacts(dataDir)),
    initialConfig: options.initialConfig ?? '',
    get engine() {
      return life.engine;
    },
    get port() {
      return port;
    },
    get securePort() {
      return securePort;
    },
  };

  const room = roomForLinks();
  if (room < Math.min(life.engine.limits.connectionsMax, fewLinks)) {
    const fields = { openFilesMax: openFilesMax(), links: room };
    options.logger?.warn(
      fields,
      'this process may open few files, and takes fewer links: ulimit -n',
    );
  }
  const door = new Door(() => life.engine, room);
  const servers: Server[] = [];
  const onBug = (error: unknown) =>
    life.engine.fail(error instanceof Error ? error : new Error(`${error}`));
  const listen = async (server: Server, port: number, at = host): Promise<number> => {
    servers.push(server);
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host: at, port, backlog: 1024 }, resolve);
    });
    return (server.address() as AddressInfo).port;
  };
  const secureServers: TlsServer[] = [];
  const unsecured = new UnsecuredLinks();
  const secure = () => {
    const { handshakeTimeoutMs } = life.engine.limits;
    const patience =
      handshakeTimeoutMs === Infinity
        ? {}
        : { handshakeTimeout: Math.min(handshakeTimeoutMs, delayMaxMs) };
    const tlsServer = createTlsServer({ ...patience, ...tls }, (socket) => {
      unsecured.delete(socket);
      if (isDisproved(socket)) {
        life.engine.tlsFailed(addressOf(socket), `${socket.authorizationError}`);
        socket.destroy();
        return;
      }
      serveTls(socket, (wire, ids) => door.open(wire, ids), onBug);
    });
    tlsServer.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => {
      const { code, message } = error;
      // A TLS socket that is destroyed has forgotten its address; the one below it remembers.
      const { _parent: below = socket } = socket as TLSSocket & { readonly _parent?: Socket };
      // Where the certificate was at fault, Node's error says no more than that the socket was closed.
      const reason = socket.authorizationError ?? `${code ?? 'no code'}: ${message}`;
      life.engine.tlsFailed(addressOf(below), `${reason}`);
      socket.destroy(); // of one who took too long Node only tells
    });
    secureServers.push(tlsServer);
    // Links are counted, and can be closed, from when they are dialled.
    return createServer({ noDelay: true }, (socket) => {
      const leave = door.enter(addressOf(socket));
      if (leave === undefined) {
        life.engine.turnedAway(addressOf(socket));
        socket.destroy();
        return;
      }
      unsecured.add(socket);
      socket.once('close', () => {
        unsecured.delete(socket);
        leave();
      });
      tlsServer.emit('connection', socket);
    });
  };
  const plain = () => {
    const server = createServer({ noDelay: true });
    return server.once('listening', () => servePlain(server, (wire) => door.admit(wire), onBug));
  };

  const shut = () => {
    disk?.stop();
    unsecured.destroy(); // with the others they would be waited for, and they may say nothing for long
    return Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  };
  onFailed = (error) => {
    void shut().then(() => failed.resolve(error));
  };
  try {
    if (tls === undefined || tls.port !== undefined)
      port = await listen(plain(), options.port ?? 2181);
    else {
      port = await listen(secure(), options.port ?? 2281);
      securePort = port;
    }
    if (tls?.port !== undefined) securePort = await listen(secure(), tls.port, tls.host);
  } catch (error) {
    await shut();
    await life.stop();
    throw error;
  }
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    stopping.abort(new Error('the server stops')); // what is still being brought is not waited for
    await restoring?.catch(() => {}); // told to who asked for it
    const shutDown = shut();
    await life.stop();
    await shutDown;
  };
  const closeOnce = () => (closing ??= close());
  return {
    host,
    port,
    securePort,
    address: `${host.includes(':') ? `[${host}]` : host}:${port}`,
    get engine() {
      return life.engine;
    },
    get persistence() {
      return life.persistence;
    },
    facts,
    failed: failed.promise,
    setTls(tlsOptions) {
      for (const server of secureServers) server.setSecureContext(tlsOptions);
    },
    close: closeOnce,
    [Symbol.asyncDispose]: closeOnce,
  };
}

/** What comes, until `signal` says that it is not waited for any more. */
async function* until<T>(items: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const iterator = items[Symbol.asyncIterator]();
  let giveUp: (reason: unknown) => void = () => {};
  const aborted = () => giveUp(signal.reason);
  signal.addEventListener('abort', aborted);
  try {
    for (;;) {
      signal.throwIfAborted();
      const next = await new Promise<IteratorResult<T>>((resolve, reject) => {
        giveUp = reject;
        iterator.next().then(resolve, reject);
      });
      if (next.done) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener('abort', aborted);
  }
}
