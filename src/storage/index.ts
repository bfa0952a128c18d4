export { digestVersion, nodeDigest, TreeDigest } from '../protocol/index.ts';
export { adler32, adlerStart } from './adler32.ts';
export {
  type DataDirectory,
  type DirectoryOptions,
  openDirectory,
  secondFolder,
} from './directory.ts';
export { encodeMark, type Mark, markName, readMark } from './durable-mark.ts';
export {
  type Compression,
  type LogFile,
  listLogs,
  listSnapshots,
  logName,
  parseLogName,
  parseSnapshotName,
  type SnapshotFile,
  snapshotName,
  temporaryPrefix,
  versionFolder,
} from './file-names.ts';
export { type FileSystem, realFileSystem, type StoredFile } from './file-system.ts';
export { type NodeState, type PathChange, pathHistory } from './history.ts';
export {
  type DescribedTxn,
  type DirectoryReport,
  describeEntry,
  dumpLog,
  dumpSnapshot,
  type FileReport,
  partsOf,
  verifyDirectory,
} from './inspect.ts';
export { type DirectoryLock, lockDirectory } from './lock.ts';
export {
  beginEntry,
  endEntry,
  LogEntry,
  txnBytesMax,
} from './log-entry.ts';
export { type LogEnd, LogReader, type LogSummary } from './log-reader.ts';
export { LogWriter, type LogWriterOptions, preallocBytesDefault } from './log-writer.ts';
export { type PurgeResult, purge, snapshotsKeptMin } from './purge.ts';
export { isProven, missingBehind, readThrough } from './read-through.ts';
export { recover } from './recover.ts';
export type {
  Notice,
  NoticeKind,
  Recovered,
  RecoverOptions,
  RecoveryHandlers,
  Restored,
} from './recovery-report.ts';
export {
  readSessionSecret,
  type SessionSecret,
  secretBytes,
  writeSessionSecret,
} from './session-secret.ts';
export { type Fault, SimulatedDisk } from './simulated-disk.ts';
export { diffSnapshots, type SnapshotDifference } from './snapshot-diff.ts';
export type {
  EncodedNodes,
  EncodedParts,
  SnapshotNode,
  SnapshotSink,
  ZxidDigest,
} from './snapshot-format.ts';
export { readSnapshot, type SnapshotSummary } from './snapshot-reader.ts';
export { compressionOf, type InflateLimits } from './snapshot-source.ts';
export {
  type SnapshotContent,
  type SnapshotWriterOptions,
  type WrittenSnapshot,
  writeSnapshot,
} from './snapshot-writer.ts';
export {
  isStorageError,
  StorageError,
  type StorageErrorCode,
  type ZxidRange,
  zxidText,
} from './storage-error.ts';
export { mayFollow } from './zxids.ts';
