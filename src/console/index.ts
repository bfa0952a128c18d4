export { ConsoleError, type ConsoleErrorCode } from './console-error.ts';
export type {
  ConsoleSources,
  Ends,
  OwnServer,
  ServersSeen,
  ShellLine,
  WordAnswer,
} from './sources.ts';
export {
  type ConsoleOptions,
  consolePort,
  isLoopback,
  type RunningConsole,
  startConsole,
} from './start-console.ts';
export type {
  AuditEntry,
  CommandView,
  FindingView,
  HistoryEntry,
  MetricsView,
  ServerView,
  ShellView,
} from './views.ts';
