export { addressKey } from './address-key.ts';
export { ArgumentError } from './argument-error.ts';
export { Backoff, type BackoffOptions } from './backoff.ts';
export {
  type Clock,
  delayMaxMs,
  hostClock,
  ManualClock,
  monotonicClock,
  systemClock,
  type Timer,
  type TimeSources,
} from './clock.ts';
export { type Deferred, deferred } from './deferred.ts';
export { HeldSignal, whileHeld } from './held-signal.ts';
export {
  type HttpLimits,
  httpTimeouts,
  isCrossSite,
  isOwnHost,
  limitConnections,
} from './http-guard.ts';
export { type Logger, silentLogger } from './logger.ts';
export { nearest } from './nearest.ts';
export { onAbort } from './on-abort.ts';
export { checkOptions, type OptionKind, type OptionTable, optionKinds, shown } from './options.ts';
export { Pace, paced, sortInTurns } from './pace.ts';
export { expression, glob, literal, type Pattern } from './pattern.ts';
export { PatternError } from './pattern-syntax.ts';
export { pause } from './pause.ts';
export { kindOf, readPlainFile, readPlainFileSync, refuseSpecialFile } from './plain-file.ts';
export { escaped, printable } from './printable.ts';
export { TextMap } from './text-map.ts';
export { unbounded } from './unbounded.ts';
export { unlessAborted } from './unless-aborted.ts';
export { wakefulness } from './wakefulness.ts';
export { Wakeup } from './wakeup.ts';
