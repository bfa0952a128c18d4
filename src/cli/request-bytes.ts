/**
 * How long a request is, to the byte, before it is sent: a server drops the link over one that is longer
 * than its `jute.maxbuffer`, and whoever writes many nodes is to know before the first.
 *
 * The table of ops writes it, all but the data, whose length is known.
 */

import { Writer } from '../jute/index.ts';
import { ops, type RequestOf } from '../protocol/index.ts';

/** The xid and the op's number. */
const headerBytes = 8;

const writer = new Writer();

export function requestBytes<N extends 'create2' | 'createTTL' | 'setData' | 'setACL'>(
  op: N,
  request: RequestOf<N>,
): number {
  const { data } = request as { data?: Buffer | null };
  const table: { write(writer: Writer, value: never): void } = ops[op].request;
  writer.truncate(0);
  table.write(writer, { ...request, data: null } as never);
  return headerBytes + writer.length + (data?.length ?? 0);
}
