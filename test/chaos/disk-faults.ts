/**
 * Errors of the disk, end to end (D4, D5, D6): the Nth call fails, once or from then on, for every N of a
 * server's life, and everything that was acknowledged is there afterwards.
 */

import { rmSync } from 'node:fs';
import { type Fault, SimulatedDisk } from '../../src/storage/index.ts';
import { temporaryFolder } from './child.ts';
import { diskLife } from './disk-life.ts';

export interface FaultReport {
  runs: number;
  /** Disk errors that were really handed out. */
  faults: number;
  /** Servers that refused to start, that stopped, that went on: by what failed. */
  refused: number;
  stopped: number;
  wentOn: number;
  acked: number;
  failures: string[];
}

function broken(code: string, path: string): never {
  throw Object.assign(new Error(`${code}: simulated, '${path}'`), { code });
}

type FaultKind = (from: number, onFault: () => void) => Fault;

export const faultKinds: Readonly<Record<string, FaultKind>> = {
  'EIO, once': (from, onFault) => (call) => {
    if (call.nth !== from) return undefined;
    onFault();
    broken('EIO', call.path);
  },
  'EIO, from then on': (from, onFault) => (call) => {
    if (call.nth < from) return undefined;
    onFault();
    broken('EIO', call.path);
  },
  'a failed sync, once': (from, onFault) => (call) => {
    if (call.nth !== from || call.op !== 'sync') return undefined;
    onFault();
    broken('EIO', call.path);
  },
  'a full disk, from then on': (from, onFault) => (call) => {
    if (call.nth < from) return undefined;
    if (call.op !== 'write' && call.op !== 'open create') return undefined;
    onFault();
    return call.op === 'write' ? 'short' : broken('ENOSPC', call.path);
  },
  'read-only, from then on': (from, onFault) => (call) => {
    if (call.nth < from || call.op === 'open read') return undefined;
    onFault();
    broken('EROFS', call.path);
  },
};

/** How many calls a life takes that nothing happens to. It is not the same number every time. */
export async function callsOfLife(seed: number, dataDir: string): Promise<number> {
  const disk = new SimulatedDisk();
  const { failures, stopped } = await diskLife({ seed, dataDir, disk });
  if (failures.length > 0 || stopped !== undefined) {
    throw new Error(`a life without faults: ${stopped}, ${failures}`);
  }
  return disk.calls;
}

/** Every `stride`th call, starting at `first`, with every kind of fault. */
export async function faultSweep(options: {
  readonly seed: number;
  readonly stride: number;
  readonly first?: number;
  readonly onRun?: (report: FaultReport) => void;
}): Promise<FaultReport> {
  const report = { runs: 0, faults: 0, refused: 0, stopped: 0, wentOn: 0, acked: 0, failures: [] };
  const told: FaultReport = report;
  const dataDir = temporaryFolder('faults');
  try {
    const calls = await callsOfLife(options.seed, dataDir);
    const kinds = Object.entries(faultKinds);
    for (let from = options.first ?? 1, k = 0; from <= calls; from += options.stride) {
      // With a stride the kinds take turns; without, every call meets every kind.
      const chosen = options.stride === 1 ? kinds : [kinds[k++ % kinds.length]!];
      for (const [name, make] of chosen) {
        await once(options.seed + from, name, from, make, dataDir, told);
        options.onRun?.(told);
      }
      if (told.failures.length > 0) break;
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
  return told;
}

async function once(
  seed: number,
  name: string,
  from: number,
  make: FaultKind,
  dataDir: string,
  report: FaultReport,
): Promise<void> {
  const disk = new SimulatedDisk();
  let faults = 0;
  disk.fault = make(from, () => {
    faults += 1;
  });
  const life = await diskLife({ seed, dataDir, disk });
  report.runs += 1;
  report.faults += faults;
  report.acked += life.acked;
  if (!life.started) report.refused += 1;
  else if (life.stopped !== undefined) report.stopped += 1;
  else report.wentOn += 1;
  report.failures.push(
    ...life.failures.map((failure) => `${name}, call ${from}, seed ${seed}: ${failure}`),
  );
}
