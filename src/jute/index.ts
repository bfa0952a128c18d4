export { copyAll, copyBytes, readInt, writeInt } from './bytes.ts';
export { decode, encode } from './codec.ts';
export { type FrameSink, FrameSplitter } from './frames.ts';
export { ProtocolError } from './protocol-error.ts';
export { Reader } from './reader.ts';
export {
  bool,
  buffer,
  type Fields,
  type FixedRecordType,
  fixedRecord,
  type Infer,
  int,
  long,
  type RecordType,
  record,
  type Type,
  ustring,
  ustringOrEmpty,
  ustringOrNull,
  type Values,
  type View,
  vector,
} from './types.ts';
export { Writer } from './writer.ts';
