/** The package behind the log. A file of its own, since it is loaded when the server has time for it. */

import { pino } from 'pino';
import type { Logger } from '../server/index.ts';
import { LogOutput } from './log-output.ts';

export function openLog(level: string): Logger {
  const redact = ['password', 'auth', 'token', '*.password'];
  return pino({ level, redact }, new LogOutput());
}
