/**
 * Every op of 3.9.5 (ZooDefs.OpCode) with its number, what is asked and what is answered. `writes`:
 * it takes a zxid and goes to the log.
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
}

// biome-ignore format: a table is read down its columns
export const ops = {
  create:               { code: 1,   request: CreateRequest,               response: PathResponse,                 writes: true  },
  delete:               { code: 2,   request: DeleteRequest,               response: Empty,                        writes: true  },
  exists:               { code: 3,   request: ExistsRequest,               response: StatResponse,                 writes: false },
  getData:              { code: 4,   request: GetDataRequest,              response: GetDataResponse,              writes: false },
  setData:              { code: 5,   request: SetDataRequest,              response: StatResponse,                 writes: true  },
  getACL:               { code: 6,   request: GetACLRequest,               response: GetACLResponse,               writes: false },
  setACL:               { code: 7,   request: SetACLRequest,               response: StatResponse,                 writes: true  },
  getChildren:          { code: 8,   request: GetChildrenRequest,          response: GetChildrenResponse,          writes: false },
  sync:                 { code: 9,   request: SyncRequest,                 response: PathResponse,                 writes: false },
  ping:                 { code: 11,  request: Empty,                       response: Empty,                        writes: false },
  getChildren2:         { code: 12,  request: GetChildren2Request,         response: GetChildren2Response,         writes: false },
  check:                { code: 13,  request: CheckVersionRequest,         response: Empty,                        writes: true  },
  multi:                { code: 14,  request: MultiRequest,                response: MultiResponse,                writes: true  },
  create2:              { code: 15,  request: CreateRequest,               response: Create2Response,              writes: true  },
  reconfig:             { code: 16,  request: ReconfigRequest,             response: GetDataResponse,              writes: true  },
  checkWatches:         { code: 17,  request: CheckWatchesRequest,         response: Empty,                        writes: false },
  removeWatches:        { code: 18,  request: RemoveWatchesRequest,        response: Empty,                        writes: false },
  createContainer:      { code: 19,  request: CreateRequest,               response: Create2Response,              writes: true  },
  deleteContainer:      { code: 20,  request: DeleteContainerRequest,      response: Empty,                        writes: true  },
  createTTL:            { code: 21,  request: CreateTTLRequest,            response: Create2Response,              writes: true  },
  multiRead:            { code: 22,  request: MultiRequest,                response: MultiResponse,                writes: false },
  auth:                 { code: 100, request: AuthPacket,                  response: Empty,                        writes: false },
  setWatches:           { code: 101, request: SetWatches,                  response: Empty,                        writes: false },
  sasl:                 { code: 102, request: GetSASLRequest,              response: SetSASLResponse,              writes: false },
  getEphemerals:        { code: 103, request: GetEphemeralsRequest,        response: GetEphemeralsResponse,        writes: false },
  getAllChildrenNumber: { code: 104, request: GetAllChildrenNumberRequest, response: GetAllChildrenNumberResponse, writes: false },
  setWatches2:          { code: 105, request: SetWatches2,                 response: Empty,                        writes: false },
  addWatch:             { code: 106, request: AddWatchRequest,             response: ErrorResponse,                writes: false },
  whoAmI:               { code: 107, request: Empty,                       response: WhoAmIResponse,               writes: false },
  createSession:        { code: -10, request: Empty,                       response: Empty,                        writes: true  },
  closeSession:         { code: -11, request: Empty,                       response: Empty,                        writes: true  },
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
