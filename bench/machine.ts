/**
 * What the machine did meanwhile: the CPU time of a process, how much of the machine others took, and how
 * long its disk takes for a sync.
 * The first two from /proc, so on Linux alone; elsewhere the figures are NaN, and printed as a dash.
 */

import { spawnSync } from 'node:child_process';
import { closeSync, fdatasyncSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';

/** As the kernel counts for user space on every platform that Node runs on. */
const ticksPerSecond = 100;

/** Microseconds of CPU that a process has used since it began, all its threads. */
export function cpuUsOf(pid: number): number {
  const fields = read(`/proc/${pid}/stat`)?.split(') ').at(-1)?.split(' ');
  if (fields === undefined) return Number.NaN;
  return ((Number(fields[11]) + Number(fields[12])) / ticksPerSecond) * 1e6;
}

export function residentMbOf(pid: number): number {
  const kb = /^VmRSS:\s+(\d+)/m.exec(read(`/proc/${pid}/status`) ?? '')?.[1];
  return kb === undefined ? Number.NaN : Number(kb) / 1024;
}

/** Microseconds that all cores were busy, and that the hypervisor gave to somebody else. */
function machineUs(): { busy: number; stolen: number } {
  const line = read('/proc/stat')?.split('\n')[0]?.trim().split(/\s+/).slice(1).map(Number);
  if (line === undefined) return { busy: Number.NaN, stolen: Number.NaN };
  const [user, nice, system, , , irq, softIrq, stolen] = line as [number, ...number[]];
  const unit = 1e6 / ticksPerSecond;
  return { busy: (user + nice! + system! + irq! + softIrq!) * unit, stolen: stolen! * unit };
}

export interface Disturbance {
  /** CPU time of the processes watched. */
  readonly cpuUs: ReadonlyMap<number, number>;
  /** The share of the machine that went to others, from 0 to 1. */
  readonly others: number;
}

/** Watches some processes, and by them the rest, from now until the function it returns is called. */
export function watchMachine(pids: readonly number[]): () => Disturbance {
  const before = { machine: machineUs(), cpu: pids.map(cpuUsOf), ms: performance.now() };
  return () => {
    const machine = machineUs();
    const spans = pids.map((pid, i) => cpuUsOf(pid) - before.cpu[i]!);
    const ours = spans.reduce((sum, us) => sum + us, 0);
    const wallUs = (performance.now() - before.ms) * 1e3 * cpus().length;
    const busy = machine.busy - before.machine.busy + machine.stolen - before.machine.stolen;
    return {
      cpuUs: new Map(pids.map((pid, i) => [pid, spans[i]!])),
      others: Math.max(0, busy - ours) / wallUs,
    };
  };
}

/** Has all that others left to be written written now, so that it slows nobody down later. */
export function settleDisk(): void {
  spawnSync('sync');
}

const syncedBytes = 16 * 1024;
const syncedFileBytes = 64 * 1024 * 1024;

/** The longest sync of small writes into blocks that are there already: what no server can do about. */
export function longestSyncMs(folder: string, seconds: number): number {
  const path = join(folder, 'synced');
  const file = openSync(path, 'w');
  try {
    writeSync(file, Buffer.alloc(syncedFileBytes));
    fdatasyncSync(file);
    const bytes = Buffer.alloc(syncedBytes, 1);
    let longestMs = 0;
    let at = 0;
    for (const endMs = performance.now() + seconds * 1e3; performance.now() < endMs; ) {
      writeSync(file, bytes, 0, bytes.length, at);
      at = (at + bytes.length) % syncedFileBytes;
      const startMs = performance.now();
      fdatasyncSync(file);
      longestMs = Math.max(longestMs, performance.now() - startMs);
    }
    return longestMs;
  } finally {
    closeSync(file);
    unlinkSync(path);
  }
}

export function machineText(): string {
  const load = loadavg().map((value) => value.toFixed(1));
  return `${cpus().length} cores, Node ${process.versions.node}, load average ${load.join(' ')}`;
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
