/** Every recipe that is run under faults. All of them run in each worker, side by side. */

import { appointedWorkloads } from './appointed.ts';
import { countedWorkloads } from './counted.ts';
import { fencedWorkloads } from './fenced.ts';
import { gatheringWorkloads } from './gatherings.ts';
import { queueWorkloads } from './queues.ts';
import { seenWorkloads } from './seen.ts';
import { signalWorkloads } from './signals.ts';
import { viewWorkloads } from './views.ts';
import { watchedWorkloads } from './watched.ts';
import type { Workload } from './workload.ts';

export const workloads: Readonly<Record<string, Workload>> = {
  ...fencedWorkloads,
  ...appointedWorkloads,
  ...gatheringWorkloads,
  ...countedWorkloads,
  ...queueWorkloads,
  ...signalWorkloads,
  ...viewWorkloads,
  ...seenWorkloads,
  ...watchedWorkloads,
};
