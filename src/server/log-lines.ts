/** How the server writes its log: so many lines in a second, and ids as everybody prints them. */

import type { Logger } from '../support/index.ts';

/** Lines in a second: whoever can dial could fill a disk otherwise. */
export const linesPerSecondMax = 50;

/** Passes on so many lines in a second, and then how many it did not. Errors always pass. */
export function rateLimited(logger: Logger, clock: { nowMs(): number }): Logger {
  let secondMs = 0;
  let lines = 0;
  let dropped = 0;
  const limited =
    (level: 'debug' | 'info' | 'warn') =>
    (fields: object, message: string): void => {
      const nowMs = clock.nowMs();
      if (nowMs - secondMs >= 1_000) {
        if (dropped > 0) logger.warn({ dropped }, 'lines were left out of the log');
        secondMs = nowMs;
        lines = 0;
        dropped = 0;
      }
      lines += 1;
      if (lines > linesPerSecondMax) dropped += 1;
      else logger[level](fields, message);
    };
  return {
    debug: limited('debug'),
    info: limited('info'),
    warn: limited('warn'),
    error: (fields, message) => logger.error(fields, message),
  };
}

/** Ids of sessions, as everybody prints them. */
export const hexId = (id: bigint) => `0x${BigInt.asUintN(64, id).toString(16)}`;
