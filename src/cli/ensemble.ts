/**
 * An ensemble of real Apache ZooKeeper servers on this machine, in one folder.
 *
 *   ensemble.json            who is in it, and which ZooKeeper runs it
 *   server-1/zoo.cfg         as any ZooKeeper takes it
 *   server-1/data/myid       and version-2 with the snapshots
 *   server-1/log/            version-2 with the transaction logs
 *   server-1/zookeeper.out   what it printed
 *   server-1/zookeeper.pid   ensemble-process.ts
 *
 * The servers run on when the command that started them ends. Only what was started from this folder
 * is ever ended. They listen on 127.0.0.1 alone: an ensemble on one machine is for trying out, for
 * tests and for moving; for other machines `drover ensemble config` prints the files.
 */

import { existsSync } from 'node:fs';
import { rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readPlainFile } from '../support/index.ts';
import { javaCommand, type ZooKeeperPeer } from './apache.ts';
import { connectionString, type Member, type Settings, zooCfg } from './ensemble-files.ts';
import { ServerProcess } from './ensemble-process.ts';
import { CommandError } from './exit-codes.ts';
import { ask, readValues } from './four-letter.ts';
import { makeFolders } from './make-folders.ts';

interface State {
  readonly version: 1;
  readonly peer: ZooKeeperPeer;
  readonly members: readonly Member[];
  readonly settings: Settings;
  readonly heapMiB: number;
}

export interface Plan extends Omit<State, 'version'> {
  readonly dir: string;
}

export interface MemberStatus {
  readonly member: Member;
  readonly pid: number | undefined;
  /** `leader`, `follower`, …; undefined while it takes no requests. */
  readonly mode: string | undefined;
  readonly zxid: string | undefined;
}

const host = '127.0.0.1';
const electionTimeoutMs = 90_000;
const pollMs = 100;
const stateName = 'ensemble.json';

export class LocalEnsemble {
  readonly dir: string;
  readonly #state: State;
  /** `create` made the folder itself. */
  #isNew = false;

  private constructor(dir: string, state: State) {
    this.dir = dir;
    this.#state = state;
  }

  static isAt(dir: string): boolean {
    return existsSync(join(dir, stateName));
  }

  /** Writes all files. Starts nothing. Refuses a folder that holds an ensemble already. */
  static async create({ dir: given, ...rest }: Plan): Promise<LocalEnsemble> {
    const dir = resolve(given);
    if (LocalEnsemble.isAt(dir)) {
      throw new CommandError('usage', `${dir} holds an ensemble already; name another --dir`);
    }
    const ensemble = new LocalEnsemble(dir, { version: 1, ...rest });
    ensemble.#isNew = !existsSync(dir);
    for (const { id } of rest.members) {
      const { home } = ensemble.folders(id);
      if (!existsSync(home)) continue;
      throw new CommandError(
        'data',
        `${home} is there already; name another --dir, or move it away`,
      );
    }
    for (const member of rest.members) {
      const { data, log, home } = ensemble.folders(member.id);
      await makeFolders(data, 0o700);
      await makeFolders(log, 0o700);
      const cfg = zooCfg(member, rest.members, { data, log }, rest.settings);
      await writeFile(join(home, 'zoo.cfg'), cfg);
      await writeFile(join(home, 'logback.xml'), logback);
      await writeFile(join(data, 'myid'), `${member.id}\n`);
    }
    return ensemble;
  }

  /** Last of all: a folder without it is not an ensemble yet. */
  async save(): Promise<void> {
    const path = join(this.dir, stateName);
    await writeFile(`${path}.new`, `${JSON.stringify(this.#state, null, 2)}\n`, { mode: 0o600 });
    await rename(`${path}.new`, path);
  }

  /** Takes away what `create` made, where it came to nothing before anything was started. */
  async discard(): Promise<void> {
    for (const { id } of this.members) {
      await rm(this.folders(id).home, { recursive: true, force: true });
    }
    if (this.#isNew) await rmdir(this.dir).catch(() => {}); // somebody else put something there
  }

  static async open(given: string): Promise<LocalEnsemble> {
    const dir = resolve(given);
    const path = join(dir, stateName);
    let text: string;
    try {
      text = (await readPlainFile(path)).toString('utf8');
    } catch (error) {
      const message = `${dir} holds no ensemble; start one with drover ensemble up --dir ${dir}`;
      throw new CommandError('usage', message, { cause: error });
    }
    try {
      const state = JSON.parse(text) as State;
      if (state.version !== 1 || !Array.isArray(state.members)) throw new Error('not ours');
      return new LocalEnsemble(dir, state);
    } catch (error) {
      throw new CommandError('data', `${path} can't be read: ${error}`, { cause: error });
    }
  }

  get members(): readonly Member[] {
    return this.#state.members;
  }

  get peer(): ZooKeeperPeer {
    return this.#state.peer;
  }

  get connectionString(): string {
    return connectionString(this.members);
  }

  folders(id: number): { readonly home: string; readonly data: string; readonly log: string } {
    const home = join(this.dir, `server-${id}`);
    return { home, data: join(home, 'data'), log: join(home, 'log') };
  }

  process(id: number): ServerProcess {
    if (!this.members.some((member) => member.id === id)) {
      const ids = this.members.map((member) => member.id).join(', ');
      throw new CommandError('usage', `no server ${id} in ${this.dir}; there is ${ids}`);
    }
    return new ServerProcess(this.folders(id).home);
  }

  /** Starts one and does not wait for it. False: it runs already. */
  async start(id: number): Promise<boolean> {
    const process = this.process(id);
    if ((await process.pid()) !== undefined) return false;
    const member = this.members.find((each) => each.id === id)!;
    await checkPorts([member]);
    await process.start(javaCommand(), this.#javaArgs(id));
    return true;
  }

  /** Starts all that do not run, and waits for a leader. What it started it ends again if that fails. */
  async startAll(signal?: AbortSignal): Promise<void> {
    const started: number[] = [];
    try {
      for (const { id } of this.members) if (await this.start(id)) started.push(id);
      await this.untilServing(this.members.length, signal);
    } catch (error) {
      await Promise.all(started.map((id) => this.process(id).kill()));
      throw error;
    }
  }

  /** Resolves once there is a leader and at least `count` serve. */
  async untilServing(count: number, signal?: AbortSignal): Promise<void> {
    const deadlineMs = performance.now() + electionTimeoutMs;
    for (;;) {
      const all = await this.status(signal);
      const serving = all.filter(({ mode }) => mode !== undefined);
      const isLed = serving.some(({ mode }) => mode === 'leader' || mode === 'standalone');
      if (isLed && serving.length >= count) return;
      const dead = all.filter(({ pid }) => pid === undefined);
      if (all.length - dead.length < count) {
        throw new CommandError('stopped', await this.#failure(dead[0]!.member.id, 'has ended'));
      }
      if (performance.now() > deadlineMs) {
        const { member } = all.find(({ mode }) => mode === undefined) ?? all[0]!;
        const what = `does not serve after ${electionTimeoutMs / 1000} s`;
        throw new CommandError('stopped', await this.#failure(member.id, what));
      }
      await delay(pollMs, undefined, { signal });
    }
  }

  status(signal?: AbortSignal): Promise<MemberStatus[]> {
    return Promise.all(
      this.members.map(async (member) => {
        const pid = await this.process(member.id).pid();
        const { mode, zxid } = pid === undefined ? noAnswer : await askServer(member, signal);
        return { member, pid, mode, zxid };
      }),
    );
  }

  /** Ends all, and says how many. */
  async stopAll(): Promise<number> {
    const ended = await Promise.all(this.members.map(({ id }) => this.process(id).stop()));
    return ended.filter((wasRunning) => wasRunning).length;
  }

  #javaArgs(id: number): string[] {
    const { home } = this.folders(id);
    return [
      `-Xmx${this.#state.heapMiB}m`,
      '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
      `-Dlogback.configurationFile=${join(home, 'logback.xml')}`,
      '-Dzookeeper.jmx.log4j.disable=true',
      '-cp',
      this.peer.classPath,
      'org.apache.zookeeper.server.quorum.QuorumPeerMain',
      join(home, 'zoo.cfg'),
    ];
  }

  async #failure(id: number, what: string): Promise<string> {
    const process = this.process(id);
    const tail = (await process.output()).trim().split('\n').slice(-8).join('\n');
    return `server ${id} ${what}; it said last (${process.outputPath}):\n${tail}`;
  }
}

const noAnswer = { mode: undefined, zxid: undefined };

async function askServer(member: Member, signal: AbortSignal | undefined) {
  const server = { host: member.host, port: member.clientPort, name: '' };
  try {
    const values = readValues(await ask(server, 'srvr', { signal, timeoutMs: 2_000 }));
    return { mode: values.Mode, zxid: values.Zxid };
  } catch {
    signal?.throwIfAborted();
    return noAnswer; // it starts, or it has lost its quorum
  }
}

export interface Ports {
  /** The first; the others follow. 0 takes any that are free. */
  readonly client: number;
  readonly quorum: number;
  readonly election: number;
}

/** Members on this machine, on ports that nobody listens on at this moment. */
export async function localMembers(size: number, ports: Ports): Promise<Member[]> {
  const taken = new Set<number>();
  const portOf = async (first: number, index: number) => {
    if (first > 0) return first + index;
    for (;;) {
      const port = await anyFreePort();
      if (!taken.has(port)) {
        taken.add(port);
        return port;
      }
    }
  };
  const members: Member[] = [];
  for (let index = 0; index < size; index++) {
    members.push({
      id: index + 1,
      host,
      clientPort: await portOf(ports.client, index),
      quorumPort: await portOf(ports.quorum, index),
      electionPort: await portOf(ports.election, index),
    });
  }
  return members;
}

/** Rejects naming the port that is taken, before anything is started on half of them. */
export async function checkPorts(members: readonly Member[]): Promise<void> {
  for (const member of members) {
    for (const key of ['clientPort', 'quorumPort', 'electionPort'] as const) {
      const fault = await listenFault(member[key]);
      if (fault === undefined) continue;
      const option = {
        clientPort: '--port',
        quorumPort: '--quorum-port',
        electionPort: '--election-port',
      };
      const message = `port ${member[key]} of server ${member.id} can't be used (${fault}); choose another ${option[key]}, or 0 for any that is free`;
      throw new CommandError('address', message);
    }
  }
}

function listenFault(port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen(port, host, () => server.close(() => resolve(undefined)));
  });
}

/**
 * Below the range that the kernel gives to outgoing connections: there a client that keeps dialing a
 * stopped server could be given the server's own port as its local one.
 */
async function anyFreePort(): Promise<number> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    if ((await listenFault(port)) === undefined) return port;
  }
  throw new CommandError('address', 'no free port between 20000 and 32000');
}

const logback = `<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d [%t] %p %c - %m%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
`;
