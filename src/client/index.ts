export {
  type Acl,
  type AddWatchMode,
  anyoneId,
  authId,
  type ClientInfo,
  type CreateMode,
  createModes,
  creatorAcl,
  digestId,
  type EventType,
  type Id,
  isZkError,
  openAcl,
  permissions,
  readOnlyAcl,
  type Stat,
  type StatView,
  type WatcherType,
  ZkError,
  type ZkErrorCode,
} from '../protocol/index.ts';
export { ArgumentError, type Logger } from '../support/index.ts';
export { checkClient, type DataInput } from './arguments.ts';
export type { SaslExchange, SaslMechanism } from './auth.ts';
export {
  Client,
  type ClientEvents,
  type CloseOptions,
  type CreateOptions,
  connect,
  type ReconfigOptions,
  type VersionOptions,
  type WatchingOptions,
} from './client.ts';
export { type Host, parseServers, type Servers } from './connection-string.ts';
export type { CallOptions } from './core.ts';
export { type Attempt, ConnectError, type Lookup } from './dialer.ts';
export { type KerberosModule, type KerberosOptions, kerberos } from './kerberos.ts';
export {
  type CheckOp,
  type Created,
  type CreateInput,
  type CreateOp,
  type DataAndStat,
  type DeleteOp,
  type MultiCreated,
  MultiError,
  type MultiOp,
  type ReadOp,
  type ReadResultsOf,
  type ResultsOf,
  type SetOp,
} from './multi-ops.ts';
export type { ClientOptions } from './options.ts';
export { type ProtectedOptions, unmarked } from './protected.ts';
export type { RemoveOptions } from './remove-watches.ts';
export { type DigestMd5Options, digestMd5 } from './sasl.ts';
export type { CloseResult } from './session.ts';
export type { Identity, SessionState } from './session-state.ts';
export type { DeleteProgress, Walked, WalkOptions } from './subtree.ts';
export type { TlsOptions } from './transport.ts';
export { type WatchOptions, WatchStream } from './watch-stream.ts';
export { type Change, type Listener, type WatchEvent, WatchOverflowError } from './watches.ts';
