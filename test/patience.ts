/**
 * How long a test waits for a condition before it gives up, unless it says otherwise: as long as a busy
 * machine may need. A test that holds does not wait any longer for it.
 */

import { vi } from 'vitest';

const patienceMs = 15_000;

const waitFor = vi.waitFor.bind(vi);
vi.waitFor = (work, options) =>
  waitFor(work, typeof options === 'number' ? options : { timeout: patienceMs, ...options });
