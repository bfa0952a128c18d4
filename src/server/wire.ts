/**
 * Whatever is accepted becomes a connection on a wire: plain links on bare handles where Node lets us, sockets
 * otherwise, and always for TLS. Decides nothing.
 */

import type { Server, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Id } from '../protocol/index.ts';
import { bareLinks } from './bare-wire.ts';
import { subjectOf } from './certificate-subject.ts';
import type { Connection, Wire } from './connection.ts';
import { SocketWire, tellOf } from './socket-wire.ts';

/** Serves what a server accepts that listens, was made with `noDelay`, and has no other listener. */
export function servePlain(
  server: Server,
  accept: (wire: Wire) => Connection,
  failed: (error: unknown) => void,
): void {
  server.on('connection', (socket) => serveSocket(socket, accept, failed));
  bareLinks(server, accept, failed);
}

export function serveTls(
  socket: TLSSocket,
  accept: (wire: Wire, ids: readonly Id[]) => Connection,
  failed: (error: unknown) => void,
): void {
  serveSocket(socket, (wire) => accept(wire, certificateIds(socket)), failed);
  socket.setNoDelay(true);
}

function serveSocket(
  socket: Socket,
  accept: (wire: Wire) => Connection,
  failed: (error: unknown) => void,
): void {
  const wire = new SocketWire(socket);
  const connection = accept(wire);
  tellOf(socket, wire, connection);
  socket.on('data', (chunk: Buffer) => {
    try {
      connection.receive(chunk);
    } catch (error) {
      failed(error);
    }
  });
}

/** A certificate that was asked for, and that nobody vouches for. Java refuses it, where none would do as well. */
export function isDisproved(socket: TLSSocket): boolean {
  return !socket.authorized && socket.getPeerX509Certificate() !== undefined;
}

/** Who proved a certificate has its subject as an id. */
function certificateIds(socket: TLSSocket): readonly Id[] {
  if (!socket.authorized) return [];
  const certificate = socket.getPeerX509Certificate();
  return certificate === undefined ? [] : [{ scheme: 'x509', id: subjectOf(certificate.raw) }];
}
