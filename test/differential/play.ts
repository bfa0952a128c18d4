/**
 * Plays a script on one server and writes down what it said.
 *
 * In: a script. Out: for each link, in order, every frame that came, each with the command it answers
 * if it answers one, and the end of the link if the server ended it. Who waits for whom: see
 * play-scene.ts.
 *
 * Around each script: the whole tree is read as the super user sees it, then everything is taken away
 * again, so that the next script starts from the same state.
 */

import {
  type Acl,
  GetACLResponse,
  GetChildrenResponse,
  GetDataResponse,
  type ops,
} from '../../src/protocol/index.ts';
import { decodeBody } from './decode.ts';
import { ask, greet, Line, type Said, type Session, send } from './play-line.ts';
import { closesMs, Scene } from './play-scene.ts';
import { RawLink } from './raw-link.ts';
import type { Call, Script } from './script.ts';

export interface Transcript {
  /** By link, in the order in which links were made. The last one is the walk through the tree. */
  readonly links: readonly (readonly Said[])[];
  /** The last zxid before the script. */
  readonly base: bigint;
  /** Sessions in the order in which they were made. */
  readonly sessions: readonly Session[];
}

const systemPaths = ['/', '/zookeeper', '/zookeeper/quota', '/zookeeper/config'];

interface NodeSeen {
  readonly path: string;
  readonly data: Buffer | null;
  readonly acl: readonly Acl[];
}

const superCredentials = Buffer.from('super:test');

export class Player {
  readonly #port: number;
  #control: Line | undefined;
  #initial: Map<string, NodeSeen> | undefined;

  readonly #closesMs: number;

  constructor(port: number, patienceMs: number = closesMs) {
    this.#port = port;
    this.#closesMs = patienceMs;
  }

  async play(script: Script): Promise<Transcript> {
    const control = await this.#controlLine();
    control.said.length = 0;
    await control.probe(-1);
    const base = control.lastZxid;
    control.said.length = 0;
    const scene = new Scene(this.#port, base, this.#closesMs);
    try {
      await scene.run(script);
      await scene.end();
      const nodes = await this.#walk(control);
      await this.#reset(control, nodes);
    } finally {
      scene.leave();
    }
    return {
      links: [...scene.lines, control].map(({ said }) => [...said]),
      base,
      sessions: scene.sessions,
    };
  }

  close(): void {
    this.#control?.raw.destroy();
  }

  async #controlLine(): Promise<Line> {
    if (this.#control?.isUsable) return this.#control;
    const line = new Line(await RawLink.open(this.#port));
    greet(
      line,
      { lastZxidSeen: 0n, timeOut: 1_000_000, sessionId: 0n, passwd: Buffer.alloc(16) },
      -1,
    );
    await line.settled();
    const auth = { type: 0, scheme: 'digest', auth: superCredentials };
    send(line, [[{ kind: 'call', slot: -1, op: 'auth', request: auth, xid: -4 }, -1]]);
    await line.settled();
    this.#control = line;
    this.#initial ??= new Map((await this.#walk(line)).map((node) => [node.path, node]));
    return line;
  }

  /** Reads all there is, level by level. */
  async #walk(line: Line): Promise<NodeSeen[]> {
    const nodes: NodeSeen[] = [];
    for (let level = ['/']; level.length > 0; ) {
      const at = line.said.length;
      const calls = level.flatMap((path) => [
        controlCall('getData', { path, watch: false }),
        controlCall('getACL', { path }),
        controlCall('getChildren', { path, watch: false }),
      ]);
      await ask(line, calls);
      const replies = line.said.slice(at).filter((said) => said.kind === 'reply');
      const below: string[] = [];
      for (const [i, path] of level.entries()) {
        const [data, acl, children] = replies.slice(3 * i, 3 * i + 3).map(({ frame }) => frame);
        if (children === undefined) throw new Error(`the walk stopped at ${path}`);
        nodes.push({
          path,
          data: decodeBody(GetDataResponse, data!)!.data,
          acl: decodeBody(GetACLResponse, acl!)!.acl,
        });
        for (const name of decodeBody(GetChildrenResponse, children)!.children.sort()) {
          below.push(path === '/' ? `/${name}` : `${path}/${name}`);
        }
      }
      level = below;
    }
    return nodes;
  }

  /** Takes everything away that was not there at first. */
  async #reset(line: Line, nodes: readonly NodeSeen[]): Promise<void> {
    const calls: Call[] = [];
    for (const { path, data, acl } of [...nodes].reverse()) {
      if (!systemPaths.includes(path)) {
        calls.push(controlCall('delete', { path, version: -1 }));
        continue;
      }
      const first = this.#initial?.get(path);
      if (first === undefined) continue;
      if (JSON.stringify(first.acl) !== JSON.stringify(acl)) {
        calls.push(controlCall('setACL', { path, acl: first.acl, version: -1 }));
      }
      if (String(first.data) !== String(data)) {
        calls.push(controlCall('setData', { path, data: first.data, version: -1 }));
      }
    }
    if (calls.length > 0) await ask(line, calls);
  }
}

const controlCall = (op: keyof typeof ops, request: Record<string, unknown>): Call => ({
  kind: 'call',
  slot: -1,
  op,
  request,
});
