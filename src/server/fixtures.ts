/** What the tests of this room share that talk to an engine without sockets. */

import { encode } from '../jute/index.ts';
import { ConnectRequest } from '../protocol/index.ts';
import type { Wire } from './connection.ts';

export class NoWire implements Wire {
  readonly address = '127.0.0.1';
  readonly port = 1;
  readonly secure = false;
  readonly queuedBytes: number = 0;
  sent = 0;
  write(_bytes: Buffer, length: number): boolean {
    this.sent += length;
    return true;
  }
  end(): void {}
  destroy(): void {}
  pause(): void {}
  resume(): void {}
}

export function framed(...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length);
  return Buffer.concat([length, body]);
}

/** Asks for a new session. */
export const greeting: Buffer = framed(
  encode(ConnectRequest, {
    protocolVersion: 0,
    lastZxidSeen: 0n,
    timeOut: 10_000,
    sessionId: 0n,
    passwd: Buffer.alloc(16),
    readOnly: false,
  }),
);
