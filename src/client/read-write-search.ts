/**
 * Looks for a server with a quorum while one without has us.
 *
 * A read-only server keeps its clients for as long as its link lasts, so they have to look around
 * themselves: each host in turn is asked `isro`, first soon and then ever more seldom. As long as the
 * session may still be saved by a server with a quorum, the waits stay short against what is left of it.
 */

import net from 'node:net';
import tls from 'node:tls';
import { Backoff, type Clock, type Timer } from '../support/index.ts';
import type { Host } from './connection-string.ts';
import { type SavingTime, savingWaitMs } from './saving-wait.ts';
import type { TlsOptions } from './transport.ts';

export interface SearchOptions {
  readonly hosts: readonly Host[];
  readonly tls?: TlsOptions | undefined;
  readonly clock: Clock;
  readonly limitMs: number;
  /** What is left of the session that only a server with a quorum can save. Undefined: nothing. */
  readonly saving: () => SavingTime | undefined;
  /** Told once, when one is found. The search is over then. */
  readonly onFound: (host: Host) => void;
}

const backoff = { firstMs: 200, maxMs: 60_000 };
/** The answer is `rw` or `ro`; whoever says more speaks something else. */
const answerBytesMax = 64;

export class ReadWriteSearch {
  readonly #options: SearchOptions;
  readonly #backoff = new Backoff(backoff);
  #timer: Timer | undefined;
  #socket: net.Socket | undefined;
  #next = 0;
  #isOver = false;

  constructor(options: SearchOptions) {
    this.#options = options;
    this.#schedule();
  }

  stop(): void {
    this.#isOver = true;
    this.#timer?.cancel();
    this.#socket?.destroy();
  }

  #schedule(): void {
    if (this.#isOver) return;
    const { clock, saving } = this.#options;
    const left = saving();
    const longestMs = left ? savingWaitMs(left) : Number.POSITIVE_INFINITY;
    this.#timer = clock.after(Math.min(this.#backoff.next(), longestMs), () => this.#ask());
  }

  #ask(): void {
    const { hosts, clock, limitMs } = this.#options;
    const host = hosts[this.#next++ % hosts.length]!;
    const named = net.isIP(host.name) ? {} : { servername: host.name };
    const to = { host: host.name, port: host.port };
    const socket = this.#options.tls
      ? tls.connect({ ...named, ...this.#options.tls, ...to })
      : net.connect(to);
    this.#socket = socket;
    const timer = clock.after(limitMs, () => socket.destroy());
    let answer = '';
    socket.setEncoding('latin1');
    socket.on(this.#options.tls ? 'secureConnect' : 'connect', () => socket.write('isro'));
    socket.on('data', (text: string) => {
      answer += text;
      if (answer.length > answerBytesMax) socket.destroy();
    });
    socket.on('error', () => {}); // a host that is down is no news: 'close' follows
    socket.on('close', () => {
      timer.cancel();
      if (this.#isOver) return;
      if (answer !== 'rw') {
        this.#schedule();
        return;
      }
      this.stop();
      this.#options.onFound(host);
    });
  }
}
