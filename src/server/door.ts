/**
 * Lets links in as long as there are not too many, and somebody to answer.
 *
 * A link counts from when it is dialled until its socket is closed, also while TLS is agreed on: whoever
 * dials and says nothing costs as much as anybody.
 */

import type { Socket } from 'node:net';
import type { Id } from '../protocol/index.ts';
import { addressKey } from '../support/index.ts';
import type { Connection, Wire } from './connection.ts';
import type { Engine } from './engine.ts';

export class Door {
  readonly #current: () => Engine;
  /** Files that this process may open for them, whatever the limit is. */
  readonly #room: number;
  readonly #perAddress = new Map<string, number>();
  #count = 0;

  constructor(current: () => Engine, room = Infinity) {
    this.#current = current;
    this.#room = room;
  }

  /** Counts a link of this address. Returns what is to be called at its end; undefined for one too many. */
  enter(address: string): (() => void) | undefined {
    const { connectionsMax, connectionsPerAddressMax } = this.#current().limits;
    const key = addressKey(address);
    const before = this.#perAddress.get(key) ?? 0;
    const most = Math.min(connectionsMax, this.#room);
    if (this.#count >= most || before >= connectionsPerAddressMax) return undefined;
    this.#count += 1;
    this.#perAddress.set(key, before + 1);
    return () => {
      this.#count -= 1;
      const left = this.#perAddress.get(key)! - 1;
      if (left === 0) this.#perAddress.delete(key);
      else this.#perAddress.set(key, left);
    };
  }

  /** For a link that was counted. */
  open(wire: Wire, ids: readonly Id[] = []): Connection {
    const engine = this.#current();
    const connection = engine.accept(wire, ids);
    if (!engine.isServing) connection.close(); // between two lives: they will try again
    return connection;
  }

  /** Both at once; one too many is closed. */
  admit(wire: Wire): Connection {
    const leave = this.enter(wire.address);
    const connection = this.open(wire);
    if (leave === undefined) {
      this.#current().turnedAway(wire.address);
      connection.close();
    } else if (connection.isLive) {
      connection.onClosed = leave;
      this.#current().acceptedPlain(wire.address);
    } else {
      leave();
    }
    return connection;
  }
}

/**
 * Links on which nobody has agreed on TLS yet, by who they are from: the socket of TLS is another than
 * the one that it is spoken on.
 */
export class UnsecuredLinks {
  readonly #sockets = new Map<string, Socket>();

  add(socket: Socket): void {
    this.#sockets.set(peerOf(socket), socket);
  }

  delete(socket: Socket): void {
    this.#sockets.delete(peerOf(socket));
  }

  destroy(): void {
    for (const socket of [...this.#sockets.values()]) socket.destroy();
  }
}

const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`;
