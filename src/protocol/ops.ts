/**
 * Every op of 3.9.5 (ZooDefs.OpCode) with its number, what is asked and what is answered. `writes`:
 * it takes a zxid and goes to the log. `since`: the release that brought it.
 */

import type { Infer, Type } from '../jute/index.ts';
import { MultiRequest, MultiResponse } from './multi.ts';
import {
  AddWatchRequest,
  AuthPacket,
  CheckVersionRequest,
  CheckWatchesRequest,
  Create2Response,
  CreateRequest,
  CreateTTLRequest,
  DeleteContainerRequest,
  DeleteRequest,
  Empty,
  ErrorResponse,
  ExistsRequest,
  GetACLRequest,
  GetACLResponse,
  GetAllChildrenNumberRequest,
  GetAllChildrenNumberResponse,
  GetChildren2Request,
  GetChildren2Response,
  GetChildrenRequest,
  GetChildrenResponse,
  GetDataRequest,
  GetDataResponse,
  GetEphemeralsRequest,
  GetEphemeralsResponse,
  GetSASLRequest,
  PathResponse,
  ReconfigRequest,
  RemoveWatchesRequest,
  SetACLRequest,
  SetDataRequest,
  SetSASLResponse,
  SetWatches,
  SetWatches2,
  StatResponse,
  SyncRequest,
  WhoAmIResponse,
} from './records.ts';

export interface Op {
  readonly code: number;
  readonly request: Type<unknown>;
  readonly response: Type<unknown>;
  readonly writes: boolean;
  /** The first release that knows it: 3.`since`. Those of the 3.4 line and before have 4. */
  readonly since: number;
}

// biome-ignore format: a table is read down its columns
export const ops = {
  create:               { code: 1,   request: CreateRequest,               response: PathResponse,                 writes: true,  since: 4 },
  delete:               { code: 2,   request: DeleteRequest,               response: Empty,                        writes: true,  since: 4 },
  exists:               { code: 3,   request: ExistsRequest,               response: StatResponse,                 writes: false, since: 4 },
  getData:              { code: 4,   request: GetDataRequest,              response: GetDataResponse,              writes: false, since: 4 },
  setData:              { code: 5,   request: SetDataRequest,              response: StatResponse,                 writes: true,  since: 4 },
  getACL:               { code: 6,   request: GetACLRequest,               response: GetACLResponse,               writes: false, since: 4 },
  setACL:               { code: 7,   request: SetACLRequest,               response: StatResponse,                 writes: true,  since: 4 },
  getChildren:          { code: 8,   request: GetChildrenRequest,          response: GetChildrenResponse,          writes: false, since: 4 },
  sync:                 { code: 9,   request: SyncRequest,                 response: PathResponse,                 writes: false, since: 4 },
  ping:                 { code: 11,  request: Empty,                       response: Empty,                        writes: false, since: 4 },
  getChildren2:         { code: 12,  request: GetChildren2Request,         response: GetChildren2Response,         writes: false, since: 4 },
  check:                { code: 13,  request: CheckVersionRequest,         response: Empty,                        writes: true,  since: 4 },
  multi:                { code: 14,  request: MultiRequest,                response: MultiResponse,                writes: true,  since: 4 },
  create2:              { code: 15,  request: CreateRequest,               response: Create2Response,              writes: true,  since: 5 },
  reconfig:             { code: 16,  request: ReconfigRequest,             response: GetDataResponse,              writes: true,  since: 5 },
  checkWatches:         { code: 17,  request: CheckWatchesRequest,         response: Empty,                        writes: false, since: 5 },
  removeWatches:        { code: 18,  request: RemoveWatchesRequest,        response: Empty,                        writes: false, since: 5 },
  createContainer:      { code: 19,  request: CreateRequest,               response: Create2Response,              writes: true,  since: 5 },
  deleteContainer:      { code: 20,  request: DeleteContainerRequest,      response: Empty,                        writes: true,  since: 5 },
  createTTL:            { code: 21,  request: CreateTTLRequest,            response: Create2Response,              writes: true,  since: 5 },
  multiRead:            { code: 22,  request: MultiRequest,                response: MultiResponse,                writes: false, since: 6 },
  auth:                 { code: 100, request: AuthPacket,                  response: Empty,                        writes: false, since: 4 },
  setWatches:           { code: 101, request: SetWatches,                  response: Empty,                        writes: false, since: 4 },
  sasl:                 { code: 102, request: GetSASLRequest,              response: SetSASLResponse,              writes: false, since: 4 },
  getEphemerals:        { code: 103, request: GetEphemeralsRequest,        response: GetEphemeralsResponse,        writes: false, since: 6 },
  getAllChildrenNumber: { code: 104, request: GetAllChildrenNumberRequest, response: GetAllChildrenNumberResponse, writes: false, since: 6 },
  setWatches2:          { code: 105, request: SetWatches2,                 response: Empty,                        writes: false, since: 6 },
  addWatch:             { code: 106, request: AddWatchRequest,             response: ErrorResponse,                writes: false, since: 6 },
  whoAmI:               { code: 107, request: Empty,                       response: WhoAmIResponse,               writes: false, since: 7 },
  createSession:        { code: -10, request: Empty,                       response: Empty,                        writes: true,  since: 4 },
  closeSession:         { code: -11, request: Empty,                       response: Empty,                        writes: true,  since: 4 },
} as const satisfies Record<string, Op>;

export type OpName = keyof typeof ops;
export type RequestOf<N extends OpName> = Infer<(typeof ops)[N]['request']>;
export type ResponseOf<N extends OpName> = Infer<(typeof ops)[N]['response']>;

const nameByCode = new Map<number, OpName>(
  (Object.keys(ops) as OpName[]).map((name) => [ops[name].code, name]),
);

/** Undefined for a number that no version up to 3.9.5 has. */
export function opNameOf(code: number): OpName | undefined {
  return nameByCode.get(code);
}

/**
 * The xids that are no request's own: they say what kind of frame it is. A client's own requests
 * count from 1 to 2^31-1 and then from 1 again.
 */
// biome-ignore format: a table is read down its columns
export const specialXids = {
  notification: -1,
  ping:         -2,
  auth:         -4,
  setWatches:   -8,
} as const;

export const xidMax = 0x7fff_ffff;
