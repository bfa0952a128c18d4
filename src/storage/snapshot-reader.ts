/**
 * Reads a snapshot (snapshot-format.ts), plain or compressed, a stretch at a time.
 *
 * In: a file. Out: sessions, ACLs and nodes to a sink as they come, and a summary once every seal has
 * been checked. Nothing told to the sink may be believed before that: when this throws, whoever
 * listened has to forget it all.
 */

import { ProtocolError, Reader } from '../jute/index.ts';
import { Acl, FileHeader, StatPersisted } from '../protocol/index.ts';
import { adler32, adlerStart } from './adler32.ts';
import type { SnapshotFile } from './file-names.ts';
import type { FileSystem } from './file-system.ts';
import { lengthFault, txnBytesMax } from './log-entry.ts';
import {
  type EncodedParts,
  endPath,
  type SnapshotSink,
  snapshotMagic,
  snapshotVersion,
  type ZxidDigest,
} from './snapshot-format.ts';
import { type InflateLimits, snapshotBytes } from './snapshot-source.ts';
import { StorageError, zxidText } from './storage-error.ts';

export interface SnapshotSummary {
  readonly file: SnapshotFile;
  /** Inflated. */
  readonly bytes: number;
  readonly sessions: number;
  readonly acls: number;
  readonly nodes: number;
  /** Null where the writer had none yet, kept none, or was older than 3.6. */
  readonly digest: ZxidDigest | null;
  /** Null where the writer was older than 3.9, or one of ours that keeps no digest. */
  readonly lastZxid: bigint | null;
}

export async function readSnapshot(
  fs: FileSystem,
  snapshot: SnapshotFile,
  sink: SnapshotSink,
  limits: InflateLimits = {},
): Promise<SnapshotSummary> {
  const file = await fs.open(snapshot.path, 'read');
  const chunks = snapshotBytes(snapshot, file, limits);
  const parser = new SnapshotParser(chunks, sink);
  try {
    const summary = await parser.read();
    // It is whole, but it is not the one that its name says.
    if (summary.lastZxid !== null && summary.lastZxid < snapshot.zxid) {
      throw new ProtocolError(
        `it ends at zxid ${zxidText(summary.lastZxid)}, before its name does`,
      );
    }
    return { file: snapshot, ...summary };
  } catch (error) {
    if (error instanceof StorageError && error.file !== undefined) throw error;
    throw new StorageError('DAMAGED_SNAPSHOT', String(error), {
      cause: error,
      file: snapshot.path,
      offset: parser.offset,
    });
  } finally {
    await chunks.return(undefined);
    await file.close();
  }
}

/** A node without its path and data: two lengths, the ACL and the Stat. */
const nodeBytesMin = 4 + 4 + 8 + StatPersisted.width;
const emptyAclBytes = 8 + 4;
/** The last zxid and its seal. A digest and its seal are longer. */
const lastZxidBytes = 8 + 8 + 4 + endPath.length;
const endByte = endPath.charCodeAt(0);

class SnapshotParser {
  readonly #chunks: AsyncGenerator<Buffer>;
  readonly #sink: SnapshotSink;
  /** Of the node that is being read: one object for all of them. */
  readonly #parts: EncodedParts = { pathAt: 0, dataAt: 0, aclAt: 0, statAt: 0 };
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  /** Bytes before `#bytes`, and how much of `#bytes` is in the sum. */
  #base = 0;
  #summedTo = 0;
  #sum = adlerStart;

  constructor(chunks: AsyncGenerator<Buffer>, sink: SnapshotSink) {
    this.#chunks = chunks;
    this.#sink = sink;
  }

  get offset(): number {
    return this.#base + this.#at;
  }

  async read(): Promise<Omit<SnapshotSummary, 'file'>> {
    const header = FileHeader.read(await this.#take(FileHeader.width));
    if (header.magic !== snapshotMagic) throw new ProtocolError('not the header of a snapshot');
    if (header.version !== snapshotVersion) {
      throw new ProtocolError(`a snapshot of version ${header.version}`);
    }
    const sessions = await this.#readSessions();
    const acls = await this.#readAcls();
    const nodes = await this.#readNodes();
    await this.#checkSeal();
    const digest = await this.#readDigest();
    const lastZxid = await this.#readLastZxid();
    if (await this.#has(1)) throw new ProtocolError('more bytes than a snapshot has');
    return { bytes: this.offset, sessions, acls, nodes, digest, lastZxid };
  }

  async #readSessions(): Promise<number> {
    const count = (await this.#take(4)).int();
    for (let i = 0; i < count; i++) {
      const reader = await this.#take(12);
      this.#sink.session(reader.long(), reader.int());
    }
    return count;
  }

  async #readAcls(): Promise<number> {
    const count = (await this.#take(4)).int();
    for (let i = 0; i < count; i++) {
      const reader = await this.#take(emptyAclBytes);
      const id = Number(reader.long());
      const acl: Acl[] = [];
      for (let left = reader.int(); left > 0; left--) acl.push(await this.#readAcl());
      this.#sink.acl(id, acl);
    }
    return count;
  }

  async #readAcl(): Promise<Acl> {
    // perms, then two strings: the lengths tell, one after the other, how much must be here.
    await this.#need(8);
    const schemeBytes = this.#lengthAt(4);
    await this.#need(12 + schemeBytes);
    const idBytes = this.#lengthAt(8 + schemeBytes);
    return Acl.read(await this.#take(12 + schemeBytes + idBytes));
  }

  /** The bulk of the file: no promise is made for a node whose bytes are here. */
  async #readNodes(): Promise<number> {
    for (let nodes = 0; ; nodes++) {
      await (this.#here >= 4 ? undefined : this.#need(4));
      const pathBytes = this.#lengthAt(0);
      if (this.#here < 8 + pathBytes) await this.#need(4 + pathBytes);
      if (pathBytes === endPath.length && this.#bytes[this.#at + 4] === endByte) {
        this.#at += 4 + pathBytes;
        if (nodes === 0) throw new ProtocolError('not one node, and every tree has a root');
        return nodes;
      }
      if (this.#here < 8 + pathBytes) await this.#need(8 + pathBytes);
      const dataBytes = this.#lengthAt(4 + pathBytes);
      const wanted = nodeBytesMin + pathBytes + dataBytes;
      if (this.#here < wanted) await this.#need(wanted);
      const parts = this.#parts;
      parts.pathAt = this.#at;
      parts.dataAt = this.#at + 4 + pathBytes;
      parts.aclAt = parts.dataAt + 4 + dataBytes;
      parts.statAt = parts.aclAt + 8;
      if (!this.#sink.encoded?.(this.#bytes, parts)) this.#tell(parts);
      this.#at += wanted;
    }
  }

  #tell({ pathAt, dataAt, statAt }: EncodedParts): void {
    const path = this.#bytes.toString('utf8', pathAt + 4, dataAt);
    const reader = new Reader(this.#bytes, dataAt, statAt + StatPersisted.width);
    const data = reader.buffer();
    const acl = reader.int() * 2 ** 32 + (reader.int() >>> 0);
    this.#sink.node({ path, data, acl, stat: StatPersisted.read(reader) });
  }

  async #readDigest(): Promise<ZxidDigest | null> {
    if (!(await this.#has(lastZxidBytes + 1))) return null;
    const head = await this.#take(12);
    const zxid = head.long();
    const version = head.int();
    // Version 1 wrote the sum as text.
    const value =
      version < 2 ? BigInt.asIntN(64, BigInt(`0x${await this.#readText()}`)) : await this.#long();
    await this.#checkSeal();
    return zxid > 0n ? { zxid, version, value } : null;
  }

  async #readLastZxid(): Promise<bigint | null> {
    if (!(await this.#has(1))) return null;
    const zxid = await this.#long();
    await this.#checkSeal();
    return zxid;
  }

  async #checkSeal(): Promise<void> {
    this.#addUp();
    const expected = this.#sum;
    const sum = await this.#long();
    if (sum !== BigInt(expected)) throw new ProtocolError('wrong checksum');
    if ((await this.#readText()) !== endPath) throw new ProtocolError('a seal without its end');
  }

  async #long(): Promise<bigint> {
    return (await this.#take(8)).long();
  }

  async #readText(): Promise<string> {
    await this.#need(4);
    return (await this.#take(4 + this.#lengthAt(0))).ustring();
  }

  get #here(): number {
    return this.#bytes.length - this.#at;
  }

  /** A jute length; null (-1) takes no bytes. Checked, since it decides how much is read at once. */
  #lengthAt(ahead: number): number {
    const length = this.#bytes.readInt32BE(this.#at + ahead);
    if (length === -1) return 0;
    if (length < 0 || length > txnBytesMax)
      throw new ProtocolError(lengthFault('a length', length));
    return length;
  }

  async #take(length: number): Promise<Reader> {
    if (this.#here < length) await this.#need(length);
    const reader = new Reader(this.#bytes, this.#at, this.#at + length);
    this.#at += length;
    return reader;
  }

  async #need(length: number): Promise<void> {
    if (!(await this.#has(length))) throw new ProtocolError('cut short');
  }

  async #has(length: number): Promise<boolean> {
    while (this.#here < length) {
      const { value, done } = await this.#chunks.next();
      if (done) return false;
      this.#addUp();
      const left = this.#bytes.subarray(this.#at);
      this.#base += this.#at;
      this.#bytes = left.length === 0 ? value : Buffer.concat([left, value]);
      this.#summedTo -= this.#at;
      this.#at = 0;
    }
    return true;
  }

  #addUp(): void {
    this.#sum = adler32(this.#bytes, this.#summedTo, this.#at, this.#sum);
    this.#summedTo = this.#at;
  }
}
