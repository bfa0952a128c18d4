/**
 * The log of the command line: pino on standard error, one JSON object a line. It is loaded behind the
 * server's back, so that being ready does not wait for it; what is said meanwhile is kept.
 */

import type { Logger } from '../server/index.ts';

const levels = ['silent', 'error', 'warn', 'info', 'debug'] as const;
export type LogLevel = (typeof levels)[number];

export function isLogLevel(text: string): text is LogLevel {
  return (levels as readonly string[]).includes(text);
}

/** Lines that wait for the logger. More than this can't come before it is there. */
const waitingMax = 1_000;

export class LazyLogger implements Logger {
  #level: LogLevel;
  #waiting: ((logger: Logger) => void)[] = [];
  #logger: Logger | undefined;

  constructor(level: LogLevel) {
    this.#level = level;
  }

  /** Rejects when its code is not there any more, once: nothing is logged from then on. */
  async load(): Promise<void> {
    if (this.#level === 'silent' || this.#logger !== undefined) return;
    const waiting = this.#waiting.splice(0);
    try {
      const { openLog } = await import('./pino-log.ts');
      const logger = openLog(this.#level);
      this.#logger = logger;
      for (const say of [...waiting, ...this.#waiting.splice(0)]) say(logger);
    } catch (error) {
      this.#level = 'silent';
      throw error;
    }
  }

  /** What was said and is still kept, before the process ends. */
  async flush(): Promise<void> {
    if (this.#waiting.length > 0) await this.load();
  }

  debug(fields: object, message: string): void {
    this.#say('debug', fields, message);
  }

  info(fields: object, message: string): void {
    this.#say('info', fields, message);
  }

  warn(fields: object, message: string): void {
    this.#say('warn', fields, message);
  }

  error(fields: object, message: string): void {
    this.#say('error', fields, message);
  }

  #say(level: Exclude<LogLevel, 'silent'>, fields: object, message: string): void {
    if (levels.indexOf(level) > levels.indexOf(this.#level)) return;
    if (this.#logger !== undefined) this.#logger[level](fields, message);
    else if (this.#waiting.length < waitingMax) {
      this.#waiting.push((logger) => logger[level](fields, message));
    }
  }
}
