/**
 * A stand-in for a server that costs next to nothing, so that with it the client is what is measured.
 *
 * It answers connect, ping, get, set, create, exists and close, from memory, with all the replies to
 * one chunk in one write. It knows nothing of sessions, watches, parents or ACLs, and of the nodes it
 * is asked to create it keeps the first few thousand. Nobody should do anything else with it.
 */

import net from 'node:net';
import { say } from './messages.ts';

const keptMax = 10_000;
const statBytes = 68;
const headerBytes = 16;
const replyOverhead = 4 + headerBytes + 4 + statBytes;
const codes = { create: 1, getData: 4, setData: 5, ping: 11, create2: 15, close: -11 };
const noNode = -101;

/** Path as latin1, which for the ASCII of a bench is the same, to its data. */
const nodes = new Map<string, Buffer>();
let zxid = 0;

class Connection {
  readonly #socket: net.Socket;
  #rest: Buffer | undefined;
  #isGreeted = false;
  #out = Buffer.allocUnsafeSlow(65_536);
  #at = 0;

  constructor(socket: net.Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('data', (chunk) => this.#received(chunk));
  }

  #received(chunk: Buffer): void {
    const bytes = this.#rest ? Buffer.concat([this.#rest, chunk]) : chunk;
    let at = 0;
    while (bytes.length - at >= 4) {
      const end = at + 4 + bytes.readInt32BE(at);
      if (end > bytes.length) break;
      if (this.#isGreeted) this.#answer(bytes, at + 4);
      else this.#greet(bytes, at + 4, end);
      at = end;
    }
    this.#rest = at < bytes.length ? bytes.subarray(at) : undefined;
    if (this.#at === 0) return;
    this.#socket.write(Buffer.from(this.#out.subarray(0, this.#at)));
    this.#at = 0;
  }

  #greet(bytes: Buffer, at: number, end: number): void {
    this.#isGreeted = true;
    // protocolVersion, lastZxidSeen, timeOut, sessionId, passwd; then, from newer clients, readOnly.
    const hasReadOnly = end - at > 44;
    this.#reserve(64);
    this.#int(hasReadOnly ? 37 : 36);
    this.#int(0);
    this.#int(bytes.readInt32BE(at + 12));
    this.#int(0x1000);
    this.#int(++zxid);
    this.#int(16);
    this.#out.fill(0, this.#at, this.#at + 16 + 1);
    this.#at += hasReadOnly ? 17 : 16;
  }

  #answer(bytes: Buffer, start: number): void {
    const xid = bytes.readInt32BE(start);
    const code = bytes.readInt32BE(start + 4);
    if (code === codes.ping || code === codes.close) {
      this.#end(this.#begin(xid, 0, 0));
      if (code === codes.close) this.#socket.end();
      return;
    }
    const pathBytes = bytes.readInt32BE(start + 8);
    const pathAt = start + 12;
    const path = bytes.toString('latin1', pathAt, pathAt + pathBytes);
    const dataAt = pathAt + pathBytes;
    if (code === codes.create || code === codes.create2) {
      const data = this.#data(bytes, dataAt);
      if (nodes.size < keptMax) nodes.set(path, data);
      zxid += 1;
      const from = this.#begin(xid, 0, pathBytes);
      this.#int(pathBytes);
      this.#at += bytes.copy(this.#out, this.#at, pathAt, pathAt + pathBytes);
      if (code === codes.create2) this.#stat(data.length);
      this.#end(from);
      return;
    }
    const known = nodes.get(path);
    if (known === undefined) {
      this.#end(this.#begin(xid, noNode, 0));
    } else if (code === codes.setData) {
      const data = this.#data(bytes, dataAt);
      nodes.set(path, data);
      zxid += 1;
      this.#found(xid, undefined, data);
    } else {
      this.#found(xid, code === codes.getData ? known : undefined, known);
    }
  }

  #data(bytes: Buffer, at: number): Buffer {
    return Buffer.from(bytes.subarray(at + 4, at + 4 + Math.max(0, bytes.readInt32BE(at))));
  }

  #found(xid: number, data: Buffer | undefined, node: Buffer): void {
    const from = this.#begin(xid, 0, node.length);
    if (data !== undefined) {
      this.#int(data.length);
      this.#at += data.copy(this.#out, this.#at);
    }
    this.#stat(node.length);
    this.#end(from);
  }

  #begin(xid: number, err: number, bodyBytes: number): number {
    this.#reserve(replyOverhead + bodyBytes);
    const from = this.#at;
    this.#at += 4;
    this.#int(xid);
    this.#int(0);
    this.#int(zxid);
    this.#int(err);
    return from;
  }

  #end(from: number): void {
    this.#out.writeInt32BE(this.#at - from - 4, from);
  }

  #stat(dataLength: number): void {
    this.#out.fill(0, this.#at, this.#at + statBytes);
    this.#out.writeInt32BE(dataLength, this.#at + 52);
    this.#at += statBytes;
  }

  #int(value: number): void {
    this.#at = this.#out.writeInt32BE(value, this.#at);
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#out.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(this.#out.length * 2, this.#at + bytes));
    this.#out.copy(grown, 0, 0, this.#at);
    this.#out = grown;
  }
}

const server = net.createServer((socket) => new Connection(socket));
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as net.AddressInfo;
  say({ ready: { pid: process.pid, port } });
});
