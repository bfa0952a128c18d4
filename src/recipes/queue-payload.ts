/**
 * The bytes of an item in Curator's layout: one node holds one item or several.
 *
 *   version:int = 0x00010001   { 0x01  length:int  bytes }*   0x02
 */

const version = 0x0001_0001;
const itemMark = 0x01;
const endMark = 0x02;

export function encodePayload(parts: readonly Uint8Array[]): Buffer {
  const bytes = parts.reduce((sum, part) => sum + 5 + part.byteLength, 5);
  const payload = Buffer.alloc(bytes);
  let at = payload.writeInt32BE(version);
  for (const part of parts) {
    at = payload.writeUInt8(itemMark, at);
    at = payload.writeInt32BE(part.byteLength, at);
    payload.set(part, at);
    at += part.byteLength;
  }
  payload.writeUInt8(endMark, at);
  return payload;
}

/** Null for bytes that Curator's own reader would refuse. What stands behind the end is not looked at. */
export function decodePayload(payload: Buffer | null): Buffer[] | null {
  if (payload === null || payload.length < 5 || payload.readInt32BE(0) !== version) return null;
  const parts: Buffer[] = [];
  for (let at = 4; at < payload.length; ) {
    const mark = payload[at]!;
    if (mark === endMark) return parts;
    if (mark !== itemMark || at + 5 > payload.length) return null;
    const length = payload.readInt32BE(at + 1);
    if (length < 0 || at + 5 + length > payload.length) return null;
    parts.push(payload.subarray(at + 5, at + 5 + length));
    at += 5 + length;
  }
  return null;
}
