/**
 * Snapshots that Apache wrote with `snapshot.compression.method=snappy`: the framing of snappy-java's
 * SnappyInputStream, and Snappy itself. Only read, never written.
 *
 *   stream   82 "SNAPPY" 00  version:int  compatible:int  { length:int  block[length] }*
 *   block    plain length as a varint, then elements, told by the low two bits of a tag byte:
 *              0  literal    length - 1 in 6 bits, or in the 1 to 4 bytes behind it (60 to 63)
 *              1  copy       length - 4 in 3 bits, offset in 3 bits and a byte
 *              2  copy       length - 1 in 6 bits, offset in 2 bytes, little end first
 *              3  copy       the same with 4 bytes
 */

import { ProtocolError } from '../jute/index.ts';

const magic = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0]);
const headBytes = magic.length + 8;
/** snappy-java's default block is 32 KiB; nobody sets it above this. */
const blockBytesMax = 16 * 1024 ** 2;

export async function* unsnappy(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let bytes: Buffer = Buffer.alloc(0);
  let isHeadRead = false;
  for await (const chunk of chunks) {
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
    let at = 0;
    if (!isHeadRead) {
      if (bytes.length < headBytes) continue;
      if (!bytes.subarray(0, magic.length).equals(magic))
        throw new ProtocolError('no snappy magic');
      isHeadRead = true;
      at = headBytes;
    }
    while (bytes.length - at >= 4) {
      const length = bytes.readUInt32BE(at);
      if (length > blockBytesMax) throw new ProtocolError(`a snappy block of ${length} bytes`);
      if (bytes.length - at - 4 < length) break;
      yield decodeBlock(bytes.subarray(at + 4, at + 4 + length));
      at += 4 + length;
    }
    bytes = bytes.subarray(at);
  }
  if (!isHeadRead || bytes.length > 0) throw new ProtocolError('a snappy stream cut short');
}

export function decodeBlock(block: Buffer): Buffer {
  let at = 0;
  let plainBytes = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = block[at++];
    if (byte === undefined || shift > 28) throw new ProtocolError('a snappy length cut short');
    plainBytes += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) break;
  }
  if (plainBytes > blockBytesMax) throw new ProtocolError(`a snappy block of ${plainBytes} bytes`);
  const plain = Buffer.allocUnsafeSlow(plainBytes);
  let end = 0;
  while (at < block.length) {
    const tag = block[at++]!;
    const kind = tag & 3;
    // How many bytes behind the tag hold the length (of a literal) or the offset (of a copy).
    const extra = kind === 0 ? Math.max(0, (tag >> 2) - 59) : kind === 3 ? 4 : kind;
    if (at + extra > block.length) throw new ProtocolError('a snappy element cut short');
    const operand = extra === 0 ? 0 : block.readUIntLE(at, extra);
    at += extra;
    if (kind === 0) {
      const length = (extra === 0 ? tag >> 2 : operand) + 1;
      if (at + length > block.length || end + length > plainBytes) {
        throw new ProtocolError('a snappy literal past the end');
      }
      block.copy(plain, end, at, at + length);
      at += length;
      end += length;
      continue;
    }
    const length = kind === 1 ? ((tag >> 2) & 7) + 4 : (tag >> 2) + 1;
    const offset = kind === 1 ? ((tag >> 5) << 8) | operand : operand;
    if (offset === 0 || offset > end || end + length > plainBytes) {
      throw new ProtocolError('a snappy copy from nowhere');
    }
    // Byte by byte: a copy may overlap what it makes, which is how runs are written.
    for (let i = 0; i < length; i++, end++) plain[end] = plain[end - offset]!;
  }
  if (end !== plainBytes) throw new ProtocolError('a snappy block cut short');
  return plain;
}
