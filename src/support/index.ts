export { Backoff, type BackoffOptions } from './backoff.ts';
export { type Clock, delayMaxMs, ManualClock, systemClock, type Timer } from './clock.ts';
export { type Deferred, deferred } from './deferred.ts';
export { type Logger, silentLogger } from './logger.ts';
export { onAbort } from './on-abort.ts';
export { Pace, paced, sortInTurns } from './pace.ts';
export { pause } from './pause.ts';
export { wakefulness } from './wakefulness.ts';
export { Wakeup } from './wakeup.ts';
