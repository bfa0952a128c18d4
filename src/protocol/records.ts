/**
 * Every record of `zookeeper.jute` (3.9.5) that a client, a standalone server or their files use.
 * Names and order of the fields are ZooKeeper's own. Left out: the quorum's records, which members of
 * an ensemble speak among themselves, and those of get and set max children, which no op uses.
 */

import {
  bool,
  buffer,
  encode,
  fixedRecord,
  type Infer,
  int,
  long,
  record,
  type Type,
  ustring,
  ustringOrEmpty,
  ustringOrNull,
  vector,
} from '../jute/index.ts';
import { openAcl } from './acls.ts';

// ── data ────────────────────────────────────────────────────────────────────────────────────────

export const Id = record('Id', { scheme: ustringOrEmpty, id: ustringOrEmpty });
export type Id = Infer<typeof Id>;

export const Acl = record('ACL', { perms: int, id: Id });
export type Acl = Infer<typeof Acl>;

/**
 * The ACL of what is made. Nearly always the open one: it is known by its bytes, and read as the one
 * list that all share and nobody may change. What a caller is handed (`getACL`) is a list of its own.
 */
const acls = vector(Acl);
const openAclBytes = encode(acls, [...openAcl]);
const givenAcl: typeof acls = {
  ...acls,
  read: (reader) => (reader.skipIf(openAclBytes) ? (openAcl as Acl[]) : acls.read(reader)),
  write(writer, value) {
    if (value === openAcl) writer.raw(openAclBytes);
    else acls.write(writer, value);
  },
};

export const Stat = fixedRecord('Stat', {
  czxid: long,
  mzxid: long,
  ctime: long,
  mtime: long,
  version: int,
  cversion: int,
  aversion: int,
  ephemeralOwner: long,
  dataLength: int,
  numChildren: int,
  pzxid: long,
});
export type Stat = Infer<typeof Stat>;
/** A Stat as it came off the wire: its longs are decoded when looked at. */
export type StatView = ReturnType<typeof Stat.read>;

export const StatPersisted = fixedRecord('StatPersisted', {
  czxid: long,
  mzxid: long,
  ctime: long,
  mtime: long,
  version: int,
  cversion: int,
  aversion: int,
  ephemeralOwner: long,
  pzxid: long,
});
export type StatPersisted = Infer<typeof StatPersisted>;

export const ClientInfo = record('ClientInfo', { authScheme: ustring, user: ustringOrNull });
export type ClientInfo = Infer<typeof ClientInfo>;

// ── headers and the handshake ───────────────────────────────────────────────────────────────────

export const RequestHeader = fixedRecord('RequestHeader', { xid: int, type: int });
export const ReplyHeader = fixedRecord('ReplyHeader', { xid: int, zxid: long, err: int });
export const MultiHeader = fixedRecord('MultiHeader', { type: int, done: bool, err: int });

/** A trailing byte that peers before 3.4 leave out, in both directions: undefined says it was not there. */
const trailingBool: Type<boolean | undefined> = {
  name: 'boolean, or nothing',
  width: undefined,
  widthMin: 0,
  read: (reader) => (reader.remaining === 0 ? undefined : reader.bool()),
  write: (writer, value) => {
    if (value !== undefined) writer.bool(value);
  },
};

export const ConnectRequest = record('ConnectRequest', {
  protocolVersion: int,
  lastZxidSeen: long,
  timeOut: int,
  sessionId: long,
  passwd: buffer,
  readOnly: trailingBool,
});
export type ConnectRequest = Infer<typeof ConnectRequest>;

export const ConnectResponse = record('ConnectResponse', {
  protocolVersion: int,
  timeOut: int,
  sessionId: long,
  passwd: buffer,
  readOnly: trailingBool,
});
export type ConnectResponse = Infer<typeof ConnectResponse>;

// ── requests ────────────────────────────────────────────────────────────────────────────────────

export const Empty = record('Empty', {});

export const CreateRequest = record('CreateRequest', {
  path: ustring,
  data: buffer,
  acl: givenAcl,
  flags: int,
});
export type CreateRequest = Infer<typeof CreateRequest>;

export const CreateTTLRequest = record('CreateTTLRequest', {
  path: ustring,
  data: buffer,
  acl: givenAcl,
  flags: int,
  ttl: long,
});
export type CreateTTLRequest = Infer<typeof CreateTTLRequest>;

export const DeleteRequest = record('DeleteRequest', { path: ustring, version: int });
/** Not in zookeeper.jute: org.apache.zookeeper.DeleteContainerRequest, as of 3.9. */
export const DeleteContainerRequest = record('DeleteContainerRequest', { path: ustring });
export const ExistsRequest = record('ExistsRequest', { path: ustring, watch: bool });
export const GetDataRequest = record('GetDataRequest', { path: ustring, watch: bool });
export const SetDataRequest = record('SetDataRequest', {
  path: ustring,
  data: buffer,
  version: int,
});
export const GetACLRequest = record('GetACLRequest', { path: ustring });
export const SetACLRequest = record('SetACLRequest', {
  path: ustring,
  acl: givenAcl,
  version: int,
});
export const GetChildrenRequest = record('GetChildrenRequest', { path: ustring, watch: bool });
export const GetChildren2Request = record('GetChildren2Request', { path: ustring, watch: bool });
export const GetAllChildrenNumberRequest = record('GetAllChildrenNumberRequest', { path: ustring });
export const GetEphemeralsRequest = record('GetEphemeralsRequest', { prefixPath: ustring });
export const SyncRequest = record('SyncRequest', { path: ustring });
export const CheckVersionRequest = record('CheckVersionRequest', { path: ustring, version: int });

/** A new membership in whole, or servers that join and leave: what is not meant is null. */
export const ReconfigRequest = record('ReconfigRequest', {
  joiningServers: ustringOrNull,
  leavingServers: ustringOrNull,
  newMembers: ustringOrNull,
  curConfigId: long,
});
export type ReconfigRequest = Infer<typeof ReconfigRequest>;

export const CheckWatchesRequest = record('CheckWatchesRequest', { path: ustring, type: int });
export const RemoveWatchesRequest = record('RemoveWatchesRequest', { path: ustring, type: int });
export const AddWatchRequest = record('AddWatchRequest', { path: ustring, mode: int });

export const SetWatches = record('SetWatches', {
  relativeZxid: long,
  dataWatches: vector(ustring),
  existWatches: vector(ustring),
  childWatches: vector(ustring),
});
export type SetWatches = Infer<typeof SetWatches>;

export const SetWatches2 = record('SetWatches2', {
  relativeZxid: long,
  dataWatches: vector(ustring),
  existWatches: vector(ustring),
  childWatches: vector(ustring),
  persistentWatches: vector(ustring),
  persistentRecursiveWatches: vector(ustring),
});
export type SetWatches2 = Infer<typeof SetWatches2>;

export const AuthPacket = record('AuthPacket', { type: int, scheme: ustring, auth: buffer });
export type AuthPacket = Infer<typeof AuthPacket>;

export const GetSASLRequest = record('GetSASLRequest', { token: buffer });

// ── responses ───────────────────────────────────────────────────────────────────────────────────

export const PathResponse = record('PathResponse', { path: ustring });
export const StatResponse = record('StatResponse', { stat: Stat });
export const Create2Response = record('Create2Response', { path: ustring, stat: Stat });
export const GetDataResponse = record('GetDataResponse', { data: buffer, stat: Stat });
export const GetACLResponse = record('GetACLResponse', { acl: acls, stat: Stat });
export const GetChildrenResponse = record('GetChildrenResponse', { children: vector(ustring) });
export const GetChildren2Response = record('GetChildren2Response', {
  children: vector(ustring),
  stat: Stat,
});
export const GetAllChildrenNumberResponse = record('GetAllChildrenNumberResponse', {
  totalNumber: int,
});
export const GetEphemeralsResponse = record('GetEphemeralsResponse', {
  ephemerals: vector(ustring),
});
export const WhoAmIResponse = record('WhoAmIResponse', { clientInfo: vector(ClientInfo) });
export const SetSASLResponse = record('SetSASLResponse', { token: buffer });
export const ErrorResponse = record('ErrorResponse', { err: int });
export const WatcherEvent = record('WatcherEvent', { type: int, state: int, path: ustring });
export type WatcherEvent = Infer<typeof WatcherEvent>;

// ── transactions and files ──────────────────────────────────────────────────────────────────────

export const FileHeader = fixedRecord('FileHeader', { magic: int, version: int, dbid: long });

export const TxnHeader = fixedRecord('TxnHeader', {
  clientId: long,
  cxid: int,
  zxid: long,
  time: long,
  type: int,
});
export type TxnHeader = Infer<typeof TxnHeader>;

export const TxnDigest = fixedRecord('TxnDigest', { version: int, treeDigest: long });

/** As 3.4 and earlier wrote it, before the parent's counter was part of it. */
export const CreateTxnV0 = record('CreateTxnV0', {
  path: ustring,
  data: buffer,
  acl: givenAcl,
  ephemeral: bool,
});
export const CreateTxn = record('CreateTxn', {
  path: ustring,
  data: buffer,
  acl: givenAcl,
  ephemeral: bool,
  parentCVersion: int,
});
export type CreateTxn = Infer<typeof CreateTxn>;
export const CreateTTLTxn = record('CreateTTLTxn', {
  path: ustring,
  data: buffer,
  acl: givenAcl,
  parentCVersion: int,
  ttl: long,
});
export type CreateTTLTxn = Infer<typeof CreateTTLTxn>;
export const CreateContainerTxn = record('CreateContainerTxn', {
  path: ustring,
  data: buffer,
  acl: givenAcl,
  parentCVersion: int,
});
export type CreateContainerTxn = Infer<typeof CreateContainerTxn>;
export const DeleteTxn = record('DeleteTxn', { path: ustring });
export type DeleteTxn = Infer<typeof DeleteTxn>;
export const SetDataTxn = record('SetDataTxn', { path: ustring, data: buffer, version: int });
export type SetDataTxn = Infer<typeof SetDataTxn>;
export const CheckVersionTxn = record('CheckVersionTxn', { path: ustring, version: int });
export type CheckVersionTxn = Infer<typeof CheckVersionTxn>;
export const SetACLTxn = record('SetACLTxn', { path: ustring, acl: givenAcl, version: int });
export type SetACLTxn = Infer<typeof SetACLTxn>;
export const CreateSessionTxn = record('CreateSessionTxn', { timeOut: int });
export type CreateSessionTxn = Infer<typeof CreateSessionTxn>;
export const CloseSessionTxn = record('CloseSessionTxn', { paths2Delete: vector(ustring) });
export type CloseSessionTxn = Infer<typeof CloseSessionTxn>;
export const ErrorTxn = record('ErrorTxn', { err: int });
export type ErrorTxn = Infer<typeof ErrorTxn>;
export const Txn = record('Txn', { type: int, data: buffer });
export type Txn = Infer<typeof Txn>;
export const MultiTxn = record('MultiTxn', { txns: vector(Txn) });
export type MultiTxn = Infer<typeof MultiTxn>;
