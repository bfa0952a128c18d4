/**
 * Kafka's MemberMetadata and MemberAssignment, the two records that a consumer's assignor exchanges
 * through the group coordinator:
 *
 *   metadata     version:int16  topics:[string]  userData:bytes
 *   assignment   version:int16  [topic:string [partition:int32]]  userData:bytes
 *
 * Strings have their length in two bytes before them, lists and bytes in four.
 */

const int16 = (value: number) => {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
};

const int32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};

const text = (value: string) => {
  const bytes = Buffer.from(value);
  return Buffer.concat([int16(bytes.length), bytes]);
};

const list = (items: readonly Buffer[]) => Buffer.concat([int32(items.length), ...items]);

export function metadataBytes(topics: readonly string[]): Buffer {
  return Buffer.concat([int16(1), list(topics.map(text)), int32(0)]);
}

export function assignmentBytes(partitions: Readonly<Record<string, readonly number[]>>): Buffer {
  const topics = Object.entries(partitions).map(([topic, numbers]) =>
    Buffer.concat([text(topic), list(numbers.map(int32))]),
  );
  return Buffer.concat([int16(1), list(topics), int32(0)]);
}
