/**
 * A server for tests: in memory, on any free port, ready in milliseconds, and with handles to break
 * things by: sessions that expire, links that are cut, stall or are slow, ops that fail.
 */

import { setImmediate } from 'node:timers/promises';
import { errorCodes, type OpName, pathFault, wireOf, type ZkErrorCode } from '../protocol/index.ts';
import {
  type Connection,
  type RequestSeen,
  type RunningServer,
  requestOps,
  type ServerOptions,
  startServer,
} from '../server/index.ts';
import { nearest } from '../support/index.ts';
import { MovableClock } from './movable-clock.ts';

/** A tree as plain data: a path and what the node holds. */
export type Fixture = Readonly<Record<string, string | Uint8Array | null>>;

export interface TestServerOptions extends Omit<ServerOptions, 'clock' | 'inMemory'> {
  readonly clock?: MovableClock;
}

export interface TestServer extends RunningServer {
  /** Runs as real time does, and further when `advance` says so. */
  readonly clock: MovableClock;
  /** The last 10,000 requests, oldest first. */
  readonly log: readonly RequestSeen[];
  /** Ends the session as its timeout would, and waits until its ephemeral nodes are gone. */
  expire(sessionId: bigint): Promise<void>;
  /** Cuts the link that the session is on. The session itself lives on. */
  drop(sessionId: bigint): void;
  /** Neither reads from nor writes to the session's link until `resume`. */
  pause(sessionId: bigint): void;
  resume(sessionId: bigint): void;
  /** Everything that is said to the session comes this much later. 0 ends it. */
  delay(sessionId: bigint, ms: number): void;
  /**
   * The next request of this op, whoever asks, is answered with the error and not done. Ops are called as on
   * the wire: `zk.get` is `getData`. `create` and `getChildren` are both of their kinds, those with a Stat too.
   */
  failNext(op: OpName, code: ZkErrorCode): void;
  /** All nodes outside /zookeeper, as text; of the root only what it holds, if anything. */
  tree(): Record<string, string | null>;
  /** Makes these nodes and whichever are missing above them. */
  load(fixture: Fixture): Promise<void>;
}

const logMax = 10_000;

export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const clock = options.clock ?? new MovableClock();
  const log: RequestSeen[] = [];
  const failing: { op: OpName; err: number }[] = [];
  const server = await startServer({
    ...options,
    port: options.port ?? 0,
    limits: { connectionsPerAddressMax: 0, authFailuresMax: 0, ...options.limits },
    inMemory: options.dataDir === undefined,
    clock,
    onRequest(request) {
      log.push(request);
      if (log.length > logMax) log.shift();
      const at = failing.findIndex(({ op }) => op === request.op || `${op}2` === request.op);
      const forced = at === -1 ? undefined : failing.splice(at, 1)[0]!.err;
      return forced ?? options.onRequest?.(request);
    },
  });
  const linkOf = (sessionId: bigint): Connection => {
    const { sessions, connections } = server.engine;
    const isLast = ({ session }: Connection) => session?.id === sessionId; // it is over, and not all is said
    const link = sessions.get(checkedId(sessionId))?.connection ?? [...connections].find(isLast);
    if (link === undefined) throw new Error(`session 0x${sessionId.toString(16)} is on no link`);
    return link;
  };
  const checkServing = (): void => {
    if (!server.engine.isServing) throw new Error('the server is closed');
  };
  return {
    ...server,
    // After a restore they are others.
    get engine() {
      return server.engine;
    },
    get persistence() {
      return server.persistence;
    },
    clock,
    log,
    async expire(sessionId) {
      checkServing();
      for (;;) {
        const session = server.engine.sessions.get(checkedId(sessionId));
        if (session === undefined) return;
        checkServing();
        server.engine.expire(session);
        await setImmediate();
      }
    },
    drop: (sessionId) => linkOf(sessionId).close(),
    pause: (sessionId) => linkOf(sessionId).stall(),
    resume: (sessionId) => linkOf(sessionId).unstall(),
    delay: (sessionId, ms) => linkOf(sessionId).delay(ms),
    failNext(op, code) {
      checkKnown('request', op, requestOps);
      checkKnown('error', code, errorCodes);
      checkServing();
      failing.push({ op, err: wireOf(code) });
    },
    tree() {
      const { tree } = server.engine;
      const nodes: Record<string, string | null> = {};
      for (const node of tree.walk()) {
        const path = tree.nodes.pathOf(node);
        const data = tree.nodes.dataOf(node);
        if (path === '/zookeeper' || path.startsWith('/zookeeper/')) continue;
        if (path !== '/' || data?.length) nodes[path] = data?.toString('utf8') ?? null;
      }
      return nodes;
    },
    async load(fixture) {
      for (const path of Object.keys(fixture)) {
        const fault = pathFault(path);
        if (fault !== null) throw new Error(`${JSON.stringify(path)} is no path: ${fault}`);
        const data: unknown = fixture[path];
        if (data === null || typeof data === 'string' || data instanceof Uint8Array) continue;
        throw new TypeError(`${path}: text, bytes or null is wanted, not ${typeof data}`);
      }
      for (const [path, data] of Object.entries(fixture)) {
        const names = path.split('/').slice(1);
        for (let depth = 1; depth <= names.length; depth++) {
          const at = `/${names.slice(0, depth).join('/')}`;
          const isLast = depth === names.length;
          if (isLast) await server.engine.seed(at, data === null ? null : Buffer.from(data));
          else await server.engine.seed(at, Buffer.alloc(0), { onlyMissing: true });
        }
      }
    },
  };
}

/** Who asks before there is a session would wait for nothing. */
function checkedId(sessionId: unknown): bigint {
  if (typeof sessionId === 'bigint') return sessionId;
  throw new TypeError(`the id of a session is wanted, not ${sessionId}`);
}

/** For a name that nobody has, which would never come by. */
function checkKnown(kind: string, name: string, known: readonly string[]): void {
  if (known.includes(name)) return;
  const longer = known.filter((each) => each.startsWith(name));
  const near = longer.length > 0 ? longer : [nearest(name, known, 3) ?? []].flat();
  const hint =
    near.length > 0 ? `is ${near.join(', or ')} meant?` : `there are ${known.join(', ')}`;
  throw new Error(`no ${kind} is called ${JSON.stringify(name)}: ${hint}`);
}
