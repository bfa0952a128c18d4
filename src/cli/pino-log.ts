/** The package behind the log. A file of its own, since it is loaded when the server has time for it. */

import { pino } from 'pino';
import type { Logger } from '../server/index.ts';

export function openLog(level: string): Logger {
  return pino(
    { level, redact: ['password', 'auth', 'token', '*.password'] },
    pino.destination({ fd: 2, sync: true }),
  );
}
