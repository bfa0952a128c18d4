/**
 * A server of an older release, as far as its clients can tell: a proxy on loopback before a newer one.
 *
 * It does with an op that its release does not know what Apache's server of that release does: answers
 * UNIMPLEMENTED at once, out of turn, and closes the connection, so that what is not answered by then is
 * lost. To 3.4 it has no /zookeeper/config.
 */

import { createServer, connect as dial, type Socket } from 'node:net';
import { FrameSplitter, Writer } from '../src/jute/index.ts';
import { opNameOf, ops, wireOf } from '../src/protocol/index.ts';
import type { Zk } from './zk.ts';

export interface OlderServer extends AsyncDisposable {
  /** 4 poses as 3.4, and so on. It may change while there are connections. */
  line: number;
  /** Connections that were lost for an op that the release does not know. */
  readonly refusals: number;
}

const configNode = Buffer.from('/zookeeper/config');
const noNode = Buffer.from('/zookeeper/c0nfig');

/** From now on the clients of `zk.link` have such a server. Those that are connected are moved to it. */
export async function poseAs(zk: Zk, line: number): Promise<OlderServer> {
  const [host, port] = zk.directAddress.split(/[:/]/) as [string, string];
  const sockets = new Set<Socket>();
  const older = { line, refusals: 0 };
  const server = createServer((client) => {
    const behind = dial({ host, port: Number(port) });
    for (const socket of [client, behind]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        behind.destroy();
      });
    }
    behind.pipe(client);
    let isFirst = true;
    const splitter = new FrameSplitter(1 << 24, (bytes, start, end) => {
      if (client.destroyed) return;
      const body = Buffer.from(bytes.subarray(start, end));
      const op = isFirst ? undefined : opNameOf(body.readInt32BE(4));
      isFirst = false;
      if (op !== undefined && ops[op].since > older.line) {
        older.refusals += 1;
        client.end(framed(unimplemented(body.readInt32BE(0))));
        client.destroySoon();
        return;
      }
      const at = older.line < 5 ? body.indexOf(configNode) : -1;
      if (at !== -1) noNode.copy(body, at);
      behind.write(framed(body));
    });
    client.on('data', (chunk) => splitter.push(chunk));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  zk.link.retarget({ host: '127.0.0.1', port: (server.address() as { port: number }).port });
  zk.link.cut();
  return Object.assign(older, {
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

function unimplemented(xid: number): Buffer {
  const reply = new Writer();
  reply.int(xid);
  reply.long(0n);
  reply.int(wireOf('UNIMPLEMENTED'));
  return Buffer.from(reply.written());
}

function framed(body: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length);
  return Buffer.concat([length, body]);
}
