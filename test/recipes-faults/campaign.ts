/**
 * Faults, one after the other, on workers that use every recipe at once; then quiet, and the judges.
 *
 *   cut, reset      the link of a worker breaks          reply     the reply to an op is lost with the link
 *   partition       no link until the session is suspect request   a request is lost with the link
 *   expire          a session ends on the server
 *   pause           SIGSTOP until the server has let the session go, then SIGCONT
 *   kill            SIGKILL of the server, of an ensemble its leader, which comes back with its data
 *
 * In: a seed, how many faults. Out: what was broken, and counts. After each fault rounds go on before the
 * next one comes; that they do is part of what is checked. The seed gives the same faults again, not the
 * same interleaving of processes.
 */

import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Client, connect, type Identity } from '../../src/client/index.ts';
import { seeded } from '../random.ts';
import { type FaultKind, lose, pickKind } from './faults.ts';
import { Links } from './links.ts';
import type { FromWorker, ToWorker } from './messages.ts';
import { type FaultServer, killed, spawned, startFaultServer } from './processes.ts';
import type { Judge, Situation } from './workload.ts';
import { workloads } from './workloads.ts';

export interface CampaignOptions {
  readonly seed: number;
  readonly faults: number;
  /** All unless said. */
  readonly recipes?: readonly string[];
  readonly workers?: number;
  /** A real server, as `apache-3.9.5`, in place of ours. */
  readonly peer?: string | undefined;
  /** Of that many of them, when there are several. */
  readonly servers?: number;
  readonly onFault?: (kind: string, count: number) => void;
}

export interface Report {
  readonly seed: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly rounds: Readonly<Record<string, number>>;
  /** Rounds that a fault ended. */
  readonly failedRounds: number;
  readonly counts: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly broken: readonly string[];
}

const sessionTimeoutMs = 1_000;
/** Without a round for so long, something hangs. */
const progressTimeoutMs = 60_000;
const pollMs = 10;
/** Stretches without a fault in which a session ended by itself. */
const windowTriesMax = 20;
const startTriesMax = 5;

export async function campaign(options: CampaignOptions): Promise<Report> {
  const world = await begun(options);
  try {
    return await world.run(options);
  } finally {
    await world.end();
  }
}

/** On a busy machine a session may end before there was any fault: then nothing was tried yet, and all begins anew. */
async function begun(options: CampaignOptions): Promise<World> {
  for (let tries = 1; ; tries++) {
    try {
      return await World.start(options);
    } catch (error) {
      if (tries === startTriesMax) throw error;
    }
  }
}

interface WorkerProcess {
  readonly name: string;
  readonly link: Links;
  readonly child: ChildProcess;
  identity: Identity | undefined;
  readonly said: Set<FromWorker['type']>;
  readonly rounds: Map<string, number>;
}

class World {
  readonly #server: FaultServer;
  readonly #folder: string;
  readonly #witness: Client;
  readonly #workers: WorkerProcess[] = [];
  readonly #judges: ReadonlyMap<string, Judge>;
  readonly #bugs: string[] = [];
  readonly #faults: Record<string, number> = {};
  #rounds = 0;
  #failedRounds = 0;

  private constructor(
    server: FaultServer,
    folder: string,
    witness: Client,
    recipes: readonly string[],
  ) {
    this.#server = server;
    this.#folder = folder;
    this.#witness = witness;
    this.#judges = new Map(recipes.map((recipe) => [recipe, workloads[recipe]!.judge()]));
  }

  static async start({
    peer,
    servers,
    recipes = Object.keys(workloads),
    workers = 3,
  }: CampaignOptions): Promise<World> {
    const unknown = recipes.find((recipe) => !Object.hasOwn(workloads, recipe));
    if (unknown !== undefined) throw new Error(`no recipe is called ${unknown}`);
    const folder = mkdtempSync(join(tmpdir(), 'drover-recipes-'));
    const server = await startFaultServer(folder, peer, servers);
    const witness = await connect(addressOf(server), {
      renew: true,
      sessionTimeoutMs: 2_000,
      backoff: { firstMs: 1, maxMs: 50 },
    });
    const world = new World(server, folder, witness, recipes);
    try {
      for (let i = 1; i <= workers; i++) await world.#addWorker(`w${i}`);
      await world.#until('begun', () => world.#all('begun'));
      if (!world.#all('begun')) throw new Error(`it did not begin: ${world.#bugs.join('; ')}`);
    } catch (error) {
      await world.end();
      throw error;
    }
    return world;
  }

  async run({ seed, faults, onFault }: CampaignOptions): Promise<Report> {
    const random = seeded(seed);
    const looking = new AbortController();
    const looks = this.#look(looking.signal);
    for (let count = 1; count <= faults; count++) {
      const kind = pickKind(random());
      const worker = this.#workers[Math.floor(random() * this.#workers.length)]!;
      await this.#fault(kind, worker, random());
      this.#faults[kind] = (this.#faults[kind] ?? 0) + 1;
      onFault?.(kind, count);
      const wanted = this.#rounds + Math.floor(random() * 40);
      await this.#until(`a round after ${kind}`, () => this.#rounds > wanted);
      if (this.#bugs.length > 0) break;
    }
    await this.#calm();
    looking.abort();
    await looks;
    await this.#finish();
    const { situation } = this;
    await this.#witness.sync('/'); // its server may be behind the one that had the last write
    for (const judge of this.#judges.values()) await judge.end(situation);
    return this.#report(seed);
  }

  get situation(): Situation {
    const sessions = this.#workers.map(
      ({ name, identity }) => [name, identity?.sessionId ?? 0n] as const,
    );
    return { witness: this.#witness, sessions: new Map(sessions) };
  }

  async end(): Promise<void> {
    for (const { child, link } of this.#workers) {
      await killed(child);
      await link.close();
    }
    await this.#witness.close();
    await this.#server.end();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #report(seed: number): Report {
    const broken = [...this.#bugs];
    const rounds: Record<string, number> = {};
    const counts: Record<string, Record<string, number>> = {};
    for (const [recipe, judge] of this.#judges) {
      broken.push(...judge.broken.map((what) => `${recipe}: ${what}`));
      rounds[recipe] = this.#workers.reduce((sum, one) => sum + (one.rounds.get(recipe) ?? 0), 0);
      counts[recipe] = judge.counts;
    }
    return { seed, faults: this.#faults, rounds, failedRounds: this.#failedRounds, counts, broken };
  }

  async #addWorker(name: string): Promise<void> {
    const link = await Links.to(this.#server.ports);
    const recipes = [...this.#judges.keys()].join(',');
    const args = [name, link.address, String(sessionTimeoutMs), recipes];
    const child = spawned(new URL('worker.ts', import.meta.url), args);
    const worker: WorkerProcess = {
      ...{ name, link, child, identity: undefined },
      ...{ said: new Set(), rounds: new Map() },
    };
    this.#workers.push(worker);
    child.on('message', (message) => this.#heard(worker, message as FromWorker));
    child.on('exit', (code) => {
      if (!worker.said.has('finished')) this.#bugs.push(`${name} has ended with ${code}`);
    });
  }

  #heard(worker: WorkerProcess, message: FromWorker): void {
    const { name, child } = worker;
    switch (message.type) {
      case 'session':
        worker.identity = {
          sessionId: message.sessionId,
          password: Buffer.from(message.password),
        } as Identity;
        return;
      case 'round':
        this.#rounds += 1;
        worker.rounds.set(message.recipe, (worker.rounds.get(message.recipe) ?? 0) + 1);
        return;
      case 'failed':
        this.#failedRounds += 1;
        return;
      case 'bug':
        this.#bugs.push(`${message.recipe} of ${name}: ${message.error}`);
        return;
      case 'tell': {
        const { recipe, what, args } = message;
        this.#judges.get(recipe)!.hear({ worker: name, what, args });
        return;
      }
      case 'ask': {
        const { id, recipe, what, args } = message;
        const answered = this.#judges.get(recipe)!.answer({ worker: name, what, args });
        // A plain answer goes at once, so that answers are given in the order of the questions.
        if (answered instanceof Promise) void answered.then((value) => reply(child, id, value));
        else reply(child, id, answered);
        return;
      }
      default:
        worker.said.add(message.type);
    }
  }

  async #fault(kind: FaultKind, worker: WorkerProcess, dice: number): Promise<void> {
    const { link, child } = worker;
    if (kind === 'cut' || kind === 'reset') link.cut({ reset: kind === 'reset' });
    else if (kind === 'request' || kind === 'reply') lose(kind, link, dice);
    else if (kind === 'expire') await this.#expire(worker);
    else if (kind === 'partition') {
      link.refuse();
      link.cut();
      await this.#gone(worker, dice < 0.5 ? sessionTimeoutMs / 3 : undefined);
      await link.accept();
    } else if (kind === 'pause') {
      child.kill('SIGSTOP');
      await this.#gone(worker);
      child.kill('SIGCONT');
    } else {
      await this.#server.kill();
      await this.#server.start();
    }
  }

  /** Ends the session on the server. Its owner may take it back meanwhile: then not this time. */
  async #expire({ identity }: WorkerProcess): Promise<void> {
    if (identity === undefined) return;
    const thief = await connect(addressOf(this.#server), { identity }).catch(() => null);
    await thief?.close();
  }

  /** Until the server has let the session go, or `withinMs` are over. */
  async #gone({ name, identity }: WorkerProcess, withinMs?: number): Promise<void> {
    const endMs = performance.now() + (withinMs ?? progressTimeoutMs);
    while (performance.now() < endMs) {
      const owner = await this.#witness.exists(`/alive/${name}`).catch(() => undefined);
      if (owner === null || (owner && owner.ephemeralOwner !== identity?.sessionId)) return;
      await delay(pollMs);
    }
    if (withinMs === undefined) this.#bugs.push(`the session of ${name} does not expire`);
  }

  async #look(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      for (const judge of this.#judges.values()) {
        await judge.look(this.situation).catch(() => {}); // without a server there is nothing to see
      }
      await delay(pollMs);
    }
  }

  /** Nothing is wrong any more: every worker gets on with every recipe, and all is as it should be. */
  async #calm(): Promise<void> {
    for (const { link } of this.#workers) {
      link.onFrame = undefined;
      link.heal();
    }
    if (this.#bugs.length > 0) return; // it is known already that something is wrong
    await this.#allGetOn();
    for (const [recipe, judge] of this.#judges) {
      await this.#until(`${recipe} is well`, () => judge.isWell(this.situation));
      if (this.#bugs.length > 0) return;
    }
    for (let tries = 0; tries < windowTriesMax; tries++) {
      const sessions = [...this.situation.sessions.values()].join();
      const overlaps = new Map([...this.#judges].map(([recipe, one]) => [recipe, one.overlaps]));
      await this.#allGetOn();
      // A session that ends by itself, on a busy machine, is a fault too: then once more.
      if ([...this.situation.sessions.values()].join() !== sessions) continue;
      for (const [recipe, judge] of this.#judges) {
        const more = judge.overlaps - overlaps.get(recipe)!;
        if (more > 0) this.#bugs.push(`${recipe}: ${more} overlaps although nothing is wrong`);
      }
      return;
    }
  }

  async #allGetOn(): Promise<void> {
    const before = this.#workers.map(({ rounds }) => new Map(rounds));
    const late = () =>
      this.#workers.flatMap(({ name, rounds }, i) =>
        [...this.#judges.keys()]
          .filter((recipe) => (rounds.get(recipe) ?? 0) < (before[i]!.get(recipe) ?? 0) + 3)
          .map((recipe) => `${recipe} of ${name}`),
      );
    await this.#until(
      () => `rounds after the faults: ${late().join(', ')}`,
      () => late().length === 0,
    );
  }

  async #finish(): Promise<void> {
    for (const { child } of this.#workers) tell(child, { type: 'freeze' });
    await this.#until('frozen', () => this.#all('frozen'));
    for (const { child } of this.#workers) tell(child, { type: 'finish' });
    await this.#until('finished', () => this.#all('finished'));
  }

  #all(type: FromWorker['type']): boolean {
    return this.#workers.every(({ said }) => said.has(type));
  }

  /** What does not come is a bug that the report names; the campaign goes on to its judges. */
  async #until(
    what: string | (() => string),
    isSo: () => boolean | Promise<boolean>,
  ): Promise<void> {
    const endMs = performance.now() + progressTimeoutMs;
    while (!(await Promise.resolve(isSo()).catch(() => false))) {
      if (performance.now() > endMs) {
        this.#bugs.push(`waited in vain for ${typeof what === 'string' ? what : what()}`);
        return;
      }
      if (this.#workers.some(({ child }) => child.exitCode !== null && child.exitCode !== 0))
        return;
      await delay(pollMs);
    }
  }
}

const addressOf = ({ ports }: FaultServer) => ports.map((port) => `127.0.0.1:${port}`).join(',');

function tell(child: ChildProcess, message: ToWorker): void {
  if (child.connected) child.send(message, () => {}); // one that has just ended hears nothing
}

const reply = (child: ChildProcess, id: number, value: unknown) =>
  tell(child, { type: 'answer', id, value });
