/** The options that each method of the client takes, and what each must be. */

import { createModes } from '../protocol/index.ts';
import { type OptionTable, optionKinds } from '../support/index.ts';
import type {
  CloseOptions,
  CreateOptions,
  ReconfigOptions,
  VersionOptions,
  WatchingOptions,
} from './client.ts';
import type { CallOptions } from './core.ts';
import type { KerberosOptions } from './kerberos.ts';
import type { CheckOp, CreateOp, DeleteOp, ReadOp, SetOp } from './multi-ops.ts';
import type { ClientOptions } from './options.ts';
import type { ProtectedOptions } from './protected.ts';
import type { RemoveOptions } from './remove-watches.ts';
import type { DigestMd5Options } from './sasl.ts';
import type { DeleteProgress, WalkOptions } from './subtree.ts';
import type { WatchOptions } from './watch-stream.ts';

const { text, number, flag, callback, list, object, bigint, signal, data, clock, logger, oneOf } =
  optionKinds;

export const callTable = { signal, timeoutMs: number } satisfies OptionTable<CallOptions>;

export const closeTable = { timeoutMs: number } satisfies OptionTable<CloseOptions>;

export const watchingTable = {
  ...callTable,
  watch: callback,
} satisfies OptionTable<WatchingOptions>;

export const versionTable = {
  ...callTable,
  version: number,
} satisfies OptionTable<VersionOptions>;

export const createTable = {
  ...callTable,
  mode: oneOf(...Object.keys(createModes)),
  acl: list,
  ttlMs: number,
  parents: flag,
} satisfies OptionTable<CreateOptions>;

export const protectedTable = {
  ...createTable,
  retries: number,
} satisfies OptionTable<ProtectedOptions>;

export const deleteRecursiveTable = {
  ...callTable,
  onProgress: callback,
} satisfies OptionTable<CallOptions & DeleteProgress>;

export const walkTable = {
  ...callTable,
  depthMax: number,
  onUnreadable: callback,
} satisfies OptionTable<WalkOptions>;

export const reconfigTable = {
  ...callTable,
  joining: list,
  leaving: list,
  members: list,
  fromConfig: bigint,
} satisfies OptionTable<ReconfigOptions>;

export const removeTable = {
  ...callTable,
  kind: text,
  listener: callback,
  local: flag,
} satisfies OptionTable<RemoveOptions>;

export const watchTable = {
  signal,
  recursive: flag,
  bufferMax: number,
  nodesMax: number,
} satisfies OptionTable<WatchOptions>;

/** The ops of a multi and of a multiRead are objects that callers write, too. */
export const opTables = {
  create: { op: text, path: text, data, mode: createTable.mode, acl: list, ttlMs: number },
  delete: { op: text, path: text, version: number },
  set: { op: text, path: text, data, version: number },
  check: { op: text, path: text, version: number },
  get: { op: text, path: text },
  children: { op: text, path: text },
} satisfies {
  create: OptionTable<CreateOp>;
  delete: OptionTable<DeleteOp>;
  set: OptionTable<SetOp>;
  check: OptionTable<CheckOp>;
  get: OptionTable<ReadOp>;
  children: OptionTable<ReadOp>;
};

export const clientTable = {
  sessionTimeoutMs: number,
  connectTimeoutMs: number,
  attemptTimeoutMs: number,
  connectRoundsMax: number,
  backoff: object,
  tls: object,
  auth: list,
  sasl: callback,
  readOnly: flag,
  renew: flag,
  identity: object,
  readRetries: number,
  requestTimeoutMs: number,
  inFlightMax: number,
  waitingMax: number,
  frameBytesMax: number,
  requestBytesMax: number,
  closeTimeoutMs: number,
  logger,
  clock,
  random: callback,
  lookup: callback,
  firstXid: number,
} satisfies OptionTable<ClientOptions>;

export const backoffTable = {
  firstMs: number,
  maxMs: number,
} satisfies OptionTable<NonNullable<ClientOptions['backoff']>>;

export const connectTable = { ...clientTable, signal };

export const digestMd5Table = {
  username: text,
  password: text,
  realm: text,
} satisfies OptionTable<DigestMd5Options>;

export const kerberosTable = {
  service: text,
  host: text,
  principal: text,
  module: object,
} satisfies OptionTable<KerberosOptions>;
