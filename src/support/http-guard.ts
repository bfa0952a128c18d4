/**
 * What keeps an HTTP server usable when others mean it no good: a page in a browser that reads from it
 * under a name of its own (DNS rebinding), and connections that are opened and say nothing.
 *
 * Used by every small HTTP server of the project. It knows nothing of what they answer.
 */

import type { IncomingMessage, Server } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { addressKey } from './address-key.ts';

export interface HttpLimits {
  /** Connections in total. */
  readonly connectionsMax: number;
  /** Connections of one address (of IPv6: of one /64). */
  readonly connectionsPerAddressMax: number;
}

/** For `http.createServer`: a request's headers must be there within 10 s. Checked every 2 s. */
export const httpTimeouts = { headersTimeout: 10_000, connectionsCheckingInterval: 2_000 } as const;

/**
 * Bounds the connections of a server, in total and per address.
 *
 * Beyond the limit the connection that has been without a request for longest is closed in favour of the
 * new one, so that silent connections can't keep others out. Where all are busy the new one is closed.
 */
export function limitConnections(server: Server, limits: HttpLimits): void {
  const { connectionsMax, connectionsPerAddressMax } = limits;
  /** In the order in which they were last used. */
  const all = new Set<Socket>();
  const byAddress = new Map<string, Set<Socket>>();
  const busy = new Set<Socket>();
  const leave = (socket: Socket, address: string) => {
    all.delete(socket);
    const own = byAddress.get(address);
    own?.delete(socket);
    if (own?.size === 0) byAddress.delete(address);
  };
  /** Whether there is room, where needed by closing one that waits. */
  const makeRoom = (sockets: ReadonlySet<Socket>, most: number, address?: string): boolean => {
    if (sockets.size < most) return true;
    for (const socket of sockets) {
      if (busy.has(socket)) continue;
      leave(socket, address ?? addressKey(socket.remoteAddress ?? ''));
      socket.destroy();
      return true;
    }
    return false;
  };
  server.on('connection', (socket: Socket) => {
    const address = addressKey(socket.remoteAddress ?? '');
    const own = byAddress.get(address) ?? new Set();
    if (!makeRoom(own, connectionsPerAddressMax, address) || !makeRoom(all, connectionsMax)) {
      socket.destroy();
      return;
    }
    all.add(socket);
    byAddress.set(address, own.add(socket));
    socket.once('close', () => leave(socket, address));
  });
  server.on('request', ({ socket }, response) => {
    busy.add(socket);
    response.once('close', () => {
      busy.delete(socket);
      if (!all.has(socket)) return;
      for (const sockets of [all, byAddress.get(addressKey(socket.remoteAddress ?? ''))]) {
        if (sockets?.delete(socket)) sockets.add(socket);
      }
    });
  });
}

/**
 * Whether a server may answer to this `Host` header: `localhost`, any IP address, or one of `names`.
 *
 * No attacker can make a browser send an address in place of their own name. Browsers always send the
 * header; a client that speaks HTTP/1.0 may leave it out.
 */
export function isOwnHost(host: string | undefined, names: readonly string[] = []): boolean {
  if (host === undefined) return true;
  const name = host
    .replace(/:\d+$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .toLowerCase();
  return (
    name === 'localhost' || isIP(name) !== 0 || names.some((one) => one.toLowerCase() === name)
  );
}

/** Whether a page of another site makes a browser ask this. */
export function isCrossSite({ headers }: IncomingMessage): boolean {
  return headers['sec-fetch-site'] === 'cross-site';
}
