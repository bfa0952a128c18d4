/**
 * Servers that are slow, stopped or away (D15, D16, P8): a session whose client has spoken is alive, no
 * matter when the server gets round to hearing it.
 */

import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { openAcl } from '../../src/protocol/index.ts';
import { startServer } from '../../src/server/index.ts';
import { type FileSystem, realFileSystem, type StoredFile } from '../../src/storage/index.ts';
import { RawClient } from '../../src/testing/index.ts';
import { type Build, Child, temporaryFolder } from './child.ts';
import { readLanded } from './log.ts';

const tickTimeMs = 200;
const sessionTimeoutMs = 1_000;
const pingMs = 200;

export interface StallReport {
  pauses: number;
  sessions: number;
  /** Those that had to dial again while the server was stopped. */
  redialled: number;
  falseExpiries: number;
  failures: string[];
}

/** A client that holds an ephemeral node and pings on time, whatever happens. */
class Holder {
  #raw: RawClient;
  readonly #path: string;
  readonly #pinging: NodeJS.Timeout;

  private constructor(raw: RawClient, path: string) {
    this.#raw = raw;
    this.#path = path;
    this.#pinging = setInterval(() => this.#raw.send('ping', {}, -2), pingMs);
  }

  static async connect(port: number, name: string): Promise<Holder> {
    const raw = await RawClient.connect(port, { timeOut: sessionTimeoutMs });
    const holder = new Holder(raw, `/${name}`);
    const made = { path: `/${name}`, data: null, acl: [...openAcl], flags: 1 };
    await raw.ask('create', made).catch(() => {}); // `isAlive` will tell
    return holder;
  }

  /** As a client does that has heard nothing for a while: hangs up and dials again. */
  async redial(port: number): Promise<void> {
    const { sessionId, passwd } = this.#raw;
    this.#raw.close();
    this.#raw = await RawClient.connect(port, { sessionId, passwd, timeOut: sessionTimeoutMs });
  }

  hangUp(): void {
    this.#raw.close();
  }

  async isAlive(): Promise<boolean> {
    if (this.#raw.sessionId === 0n) return false;
    try {
      const { stat } = await this.#raw.ask('exists', { path: this.#path, watch: false });
      return stat.ephemeralOwner === this.#raw.sessionId;
    } catch {
      return false;
    }
  }

  close(): void {
    clearInterval(this.#pinging);
    this.#raw.close();
  }
}

const emptyReport = (): StallReport => ({
  pauses: 0,
  sessions: 0,
  redialled: 0,
  falseExpiries: 0,
  failures: [],
});

async function aliveOf(
  holders: readonly Holder[],
  report: StallReport,
  when: string,
): Promise<void> {
  const alive = await Promise.all(holders.map((holder) => holder.isAlive()));
  const dead = alive.filter((is) => !is).length;
  report.falseExpiries += dead;
  if (dead > 0) report.failures.push(`${dead} of ${holders.length} sessions lost ${when}`);
}

/** SIGSTOP for longer than the timeout, SIGCONT: everybody is still there. */
export async function stopAndGo(options: {
  readonly build: Build;
  readonly pauses: number;
  readonly holders: number;
  readonly pauseMs?: number;
}): Promise<StallReport> {
  const { pauseMs = 2_500 } = options;
  const report = emptyReport();
  const dataDir = temporaryFolder('stop');
  const child = new Child(options.build, { dataDir, tickTimeMs, preallocBytes: 0 });
  const holders: Holder[] = [];
  try {
    const port = await child.port();
    for (let i = 0; i < options.holders; i++)
      holders.push(await Holder.connect(port, `holder-${i}`));
    report.sessions = holders.length;
    for (; report.pauses < options.pauses && report.failures.length === 0; report.pauses++) {
      // A third of them has no link when it stops, and waits in the queue of the listening socket.
      const impatient = holders.filter((_, i) => i % 3 === 0);
      for (const holder of impatient) holder.hangUp();
      child.process.kill('SIGSTOP');
      await sleep(pauseMs / 2);
      const redialling = impatient.map((holder) => holder.redial(port));
      report.redialled += impatient.length;
      await sleep(pauseMs / 2);
      child.process.kill('SIGCONT');
      await Promise.all(redialling);
      await aliveOf(holders, report, `in pause ${report.pauses}`);
      await sleep(2 * tickTimeMs + sessionTimeoutMs / 2);
      await aliveOf(holders, report, `after pause ${report.pauses}`);
    }
  } catch (error) {
    report.failures.push(`${error}: ${child.errors}`);
  } finally {
    for (const holder of holders) holder.close();
    await child.kill();
  }
  await noExpiries(dataDir, report);
  return report;
}

async function noExpiries(dataDir: string, report: StallReport): Promise<void> {
  const ended = (await readLanded(dataDir)).filter(({ type }) => type === 'closeSession');
  if (ended.length > 0) report.failures.push(`${ended.length} sessions were ended in the log`);
  rmSync(dataDir, { recursive: true, force: true });
}

/** Killed, and back after more than the timeout: sessions and ephemeral nodes are kept. */
export async function killAndWait(options: {
  readonly build: Build;
  readonly holders: number;
}): Promise<StallReport> {
  const report = emptyReport();
  const dataDir = temporaryFolder('away');
  const serverOptions = { dataDir, tickTimeMs, preallocBytes: 0 };
  const holders: Holder[] = [];
  let child = new Child(options.build, serverOptions);
  try {
    const port = await child.port();
    for (let i = 0; i < options.holders; i++)
      holders.push(await Holder.connect(port, `holder-${i}`));
    report.sessions = holders.length;
    await child.kill();
    await sleep(2.5 * sessionTimeoutMs);
    child = new Child(options.build, serverOptions);
    const next = await child.port();
    await Promise.all(holders.map((holder) => holder.redial(next)));
    report.redialled = holders.length;
    await aliveOf(holders, report, 'over a restart');
    await sleep(sessionTimeoutMs + 2 * tickTimeMs);
    await aliveOf(holders, report, 'after a restart');
  } catch (error) {
    report.failures.push(`${error}: ${child.errors}`);
  } finally {
    for (const holder of holders) holder.close();
    await child.kill();
  }
  await noExpiries(dataDir, report);
  return report;
}

/** A disk whose every sync takes so long. */
export function slowDisk(syncMs: number): FileSystem {
  const slow = (file: StoredFile): StoredFile => ({
    read: (target, position) => file.read(target, position),
    write: (bytes, position) => file.write(bytes, position),
    allocate: (from, to) => file.allocate(from, to),
    truncate: (bytes) => file.truncate(bytes),
    sync: () => sleep(syncMs).then(() => file.sync()),
    size: () => file.size(),
    close: () => file.close(),
  });
  return {
    ...realFileSystem,
    open: async (path, how) => slow(await realFileSystem.open(path, how)),
  };
}

/**
 * Syncs that take longer than a session's timeout: those who only ping, those who write, and one who
 * writes more at once than the server cares to read, and whose pings therefore lie unread.
 */
export async function serveOnSlowDisk(syncMs: number, writes: number): Promise<StallReport> {
  const report = emptyReport();
  const dataDir = temporaryFolder('slow');
  const fs = slowDisk(syncMs);
  const limits = { requestsInFlightMax: 100 };
  const server = await startServer({ port: 0, dataDir, fs, tickTimeMs, limits, preallocBytes: 0 });
  const holders = await Promise.all(
    ['idle', 'busy', 'greedy'].map((name) => Holder.connect(server.port, name)),
  );
  const pinging: NodeJS.Timeout[] = [];
  // Each from the moment on at which it is welcome: the other's session may take a sync longer.
  const pinger = async () => {
    const raw = await RawClient.connect(server.port, { timeOut: sessionTimeoutMs });
    pinging.push(setInterval(() => raw.send('ping', {}, -2), pingMs));
    return raw;
  };
  const [busy, greedy] = await Promise.all([pinger(), pinger()]);
  try {
    report.sessions = holders.length + 2;
    const create = (raw: RawClient, path: string) =>
      raw.send('create', { path, data: null, acl: [...openAcl], flags: 1 });
    const last: number[] = [];
    for (let i = 0; i < writes; i++) last[0] = create(greedy, `/greedy-${i}`);
    for (let i = 0; i < 5; i++) {
      last[1] = create(busy, `/busy-${i}`);
      await sleep(syncMs / 3);
    }
    const replies = await Promise.all([greedy.reply(last[0]!), busy.reply(last[1]!)]);
    if (replies.some(({ err }) => err !== 0)) report.failures.push('a write failed');
    await aliveOf(holders, report, 'on a slow disk');
    if (server.engine.stats.sessionsExpired > 0) {
      report.falseExpiries += server.engine.stats.sessionsExpired;
      report.failures.push(`${server.engine.stats.sessionsExpired} sessions expired`);
    }
  } catch (error) {
    report.failures.push(`${error}; expired: ${server.engine.stats.sessionsExpired}`);
  } finally {
    for (const timer of pinging) clearInterval(timer);
    for (const closing of [...holders, busy, greedy]) closing.close();
    await server.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
  return report;
}
