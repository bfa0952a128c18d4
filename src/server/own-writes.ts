/**
 * What the server asks itself: the ends of sessions that nothing was heard of, containers and TTL nodes that
 * are to go, the fixtures of a test. Each stands in the same line as what clients ask.
 */

import { anyVersion, errorCodeOf, type MultiPart, openAcl, ZkError } from '../protocol/index.ts';
import type { Logger } from '../support/index.ts';
import type { Tree } from '../tree/index.ts';
import type { Connection } from './connection.ts';
import type { Limits } from './limits.ts';
import { hexId } from './log-lines.ts';
import { prepareMulti } from './multi.ts';
import type { Outlook } from './outlook.ts';
import type { Prepare } from './prepare.ts';
import type { ServerSession } from './sessions.ts';
import type { ServerStats } from './stats.ts';
import type { WriteLine } from './write-line.ts';

type Session = ServerSession<Connection>;

export interface OwnWritesParts {
  readonly line: WriteLine;
  readonly tree: Tree;
  readonly outlook: Outlook;
  readonly prepare: Prepare;
  readonly limits: Limits;
  readonly stats: ServerStats;
  readonly logger: Logger;
}

/** In one multi, when a session's nodes are more than its end can name. */
const deletedAheadMax = 1_000;
/** What stands around a path in a txn, at most: its length, and as part of a multi type and length. */
const pathHeadBytes = 12;
const pathBytes = (path: string) => Buffer.byteLength(path) + pathHeadBytes;

export class OwnWrites {
  readonly #parts: OwnWritesParts;
  /** Whoever waits for a fixture. */
  readonly #seeding = new Set<(error: Error) => void>();

  constructor(parts: OwnWritesParts) {
    this.#parts = parts;
  }

  expire(session: Session): void {
    const { line, prepare, stats, logger } = this.#parts;
    session.closing = true;
    stats.sessionsExpired += 1;
    logger.info({ session: hexId(session.id) }, 'session expired');
    this.deleteAhead(session);
    const call = line.beginOwn('closeSession', session);
    line.submit(call, prepare.closeSession(session.id, call));
  }

  /**
   * Of a session that came with a directory of Apache's, which has no such limit: ephemeral nodes that the
   * txn of its end has no room for go before it.
   */
  deleteAhead({ id }: Session): void {
    const { line, tree, outlook, prepare } = this.#parts;
    const { ephemeralPathBytesMax, multiOpsMax } = this.#parts.limits;
    const { size } = tree.ephemeralsOf(id);
    if (tree.ephemeralBytesOf(id) + 4 * size <= ephemeralPathBytesMax) return;
    const paths = outlook.ephemeralsOf(id);
    let left = paths.reduce((sum, path) => sum + pathBytes(path), 0);
    while (left > ephemeralPathBytesMax) {
      const parts: MultiPart[] = [];
      const partsMax = Math.min(deletedAheadMax, multiOpsMax);
      for (let bytes = 0; paths.length > 0 && parts.length < partsMax; ) {
        const path = paths.at(-1)!;
        bytes += pathBytes(path);
        if (bytes > ephemeralPathBytesMax && parts.length > 0) break;
        paths.pop();
        left -= pathBytes(path);
        parts.push({ op: 'delete', request: { path, version: anyVersion } });
      }
      const call = line.beginOwn('multi', undefined);
      call.aheadOf = id;
      line.submit(call, prepareMulti(prepare, outlook, parts, call, call));
    }
  }

  /**
   * Asks for one container or TTL node to go. Not while a change of it is under way, which may renew it or
   * put another in its place: the next look tells. Apache takes it away then, whatever it has become.
   */
  reap(path: string): void {
    const { line, outlook, prepare } = this.#parts;
    const node = outlook.get(path);
    if (node === undefined || node.isUnderWay) return;
    const call = line.beginOwn('deleteContainer', undefined);
    line.submit(call, prepare.deleteContainer(path, call, call));
  }

  /** Makes the node, or sets its data, as the super user would. */
  seed(path: string, data: Buffer | null, onlyMissing: boolean): Promise<void> {
    const { line, outlook, prepare } = this.#parts;
    const isThere = outlook.get(path) !== undefined;
    if (onlyMissing && isThere) return Promise.resolve();
    const call = line.beginOwn('create', undefined);
    const prepared = isThere
      ? prepare.setData({ path, data, version: anyVersion }, call, call)
      : prepare.create('create', { path, data, acl: [...openAcl], flags: 0 }, call, call);
    if (typeof prepared === 'number') {
      return Promise.reject(new ZkError(errorCodeOf(prepared), { path }));
    }
    return new Promise((resolve, reject) => {
      this.#seeding.add(reject);
      call.done = () => {
        this.#seeding.delete(reject);
        resolve();
      };
      line.submit(call, prepared);
    });
  }

  /** Nothing more is applied. */
  fail(error: Error): void {
    for (const reject of this.#seeding) reject(error);
  }
}
