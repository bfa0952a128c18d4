export { ConsoleError, type ConsoleErrorCode } from './console-error.ts';
export type { JournalLine } from './journal.ts';
export type { OpTimes, OpTimesSeen } from './op-times.ts';
export { ProcessReadings } from './process-readings.ts';
export type {
  ConsoleSources,
  ContextSources,
  CopyLine,
  Ends,
  LineChange,
  OpenContext,
  OwnServer,
  ServersSeen,
  ShellLine,
  WordAnswer,
  Written,
} from './sources.ts';
export {
  type ConsoleOptions,
  consolePort,
  isLoopback,
  type RunningConsole,
  startConsole,
} from './start-console.ts';
export type { Candidate } from './term-book.ts';
export type {
  AuditEntry,
  CommandView,
  FindingView,
  HistoryEntry,
  MetricsView,
  ServerView,
  ShellView,
} from './views.ts';
