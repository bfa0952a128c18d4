/**
 * A Java process with Curator, told what to do line by line: CuratorPeer.java says how.
 *
 *   await using java = await CuratorProcess.start(curator, address);
 *   const mutex = await java.open('mutex', { path: '/locks/x' });
 *   await mutex.do('acquire');
 *
 * It ends when its input does, so that it never outlives this process.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Curator } from './fetch.ts';

type Json = Record<string, unknown>;

/** Quick to start, and small: several of them share a machine with the servers. */
export const jvmFlags = [
  '-Xmx128m',
  '-Xshare:auto',
  '-XX:TieredStopAtLevel=1',
  '-XX:+UseSerialGC',
  '-XX:-UsePerfData',
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=error',
];

export interface CuratorThing {
  readonly name: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever JSON the verb answers with
  do(verb: string, args?: Json): Promise<any>;
  /** The next event of this kind, or one that has come and that nobody has asked for. */
  event(kind: string): Promise<Json>;
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

export class CuratorProcess {
  readonly sessionId: bigint;
  readonly #child: ChildProcess;
  readonly #asked: Map<number, Waiting>;
  readonly #events: Json[];
  readonly #hearers = new Set<() => void>();
  #count = 0;

  private constructor(
    child: ChildProcess,
    ready: Json,
    asked: Map<number, Waiting>,
    events: Json[],
  ) {
    this.#child = child;
    this.#asked = asked;
    this.#events = events;
    this.sessionId = BigInt(`0x${ready.session}`);
  }

  static async start(
    curator: Curator,
    address: string,
    { sessionTimeoutMs = 10_000 } = {},
  ): Promise<CuratorProcess> {
    const args = [...jvmFlags, '-cp', curator.classPath, 'CuratorPeer'];
    const child = spawn('java', [...args, address, String(sessionTimeoutMs)], {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    let errors = '';
    child.stderr.on('data', (chunk) => {
      errors = (errors + chunk).slice(-4_000);
    });
    child.stdin.on('error', () => {}); // its end is heard of by 'close'
    const asked = new Map<number, Waiting>();
    const events: Json[] = [];
    let process: CuratorProcess | undefined;
    const ready = new Promise<Json>((resolve, reject) => {
      createInterface(child.stdout).on('line', (line) => {
        const said = JSON.parse(line) as Json;
        if (said.event === 'ready') resolve(said);
        else if (process !== undefined) process.#heard(said);
      });
      child.on('error', reject);
      child.on('close', () => {
        const ended = new Error(`the Java process has ended: ${errors}`);
        reject(ended);
        for (const waiting of asked.values()) waiting.reject(ended);
        asked.clear();
      });
    });
    process = new CuratorProcess(child, await ready, asked, events);
    return process;
  }

  get pid(): number {
    return this.#child.pid!;
  }

  async open(kind: string, args: Json): Promise<CuratorThing> {
    this.#count += 1;
    const on = `${kind}-${this.#count}`;
    await this.#ask({ ...args, on, do: 'open', kind });
    return {
      name: on,
      do: (verb, more = {}) => this.#ask({ ...more, on, do: verb }),
      event: (wanted) => this.#event(on, wanted),
    };
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'close');
    this.#child.kill('SIGKILL');
    await ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  #ask(message: Json): Promise<unknown> {
    this.#count += 1;
    const id = this.#count;
    return new Promise((resolve, reject) => {
      this.#asked.set(id, { resolve, reject });
      this.#child.stdin!.write(`${JSON.stringify({ id, ...message })}\n`);
    });
  }

  #heard(said: Json): void {
    if (said.event !== undefined) {
      this.#events.push(said);
      for (const hearer of [...this.#hearers]) hearer();
      return;
    }
    const waiting = this.#asked.get(said.id as number);
    this.#asked.delete(said.id as number);
    if ('error' in said) waiting?.reject(new Error(`Java: ${said.error}`));
    else waiting?.resolve(said.ok);
  }

  #event(on: string, kind: string): Promise<Json> {
    return new Promise((resolve) => {
      const look = () => {
        const at = this.#events.findIndex((one) => one.on === on && one.event === kind);
        if (at === -1) return;
        this.#hearers.delete(look);
        resolve(this.#events.splice(at, 1)[0]!);
      };
      this.#hearers.add(look);
      look();
    });
  }
}
