/**
 * What files can be wrong with. Every error names the file and, where there is one, the offset and the
 * zxids at stake, so that an operator knows what would be lost before deciding anything.
 */

// biome-ignore format: a table is read down its columns
const table = {
  DAMAGED_LOG:      'the log is damaged',
  DAMAGED_SNAPSHOT: 'the snapshot is damaged',
  MISSING_TXNS:     'transactions are missing',
  UNSUPPORTED:      'the file is of a kind that is not read here',
  TXN_TOO_LARGE:    'the transaction is larger than an Apache server could read back',
  ZXID_ORDER:       'the zxid does not follow the last one',
  NOT_APPLIED:      'the transaction could not be applied',
  WRONG_DIGEST:     'the tree is not the one that was written',
  BROKEN_MEMORY:    'a node is not what was written to it; a restart reads it from disk again',
  WRITE_FAILED:     'a write to the log failed; nothing more is written until a restart',
  SNAPSHOT_FAILED:  'the snapshot could not be written; the log goes on without it',
  CLOSED:           'the log is closed',
  IN_USE:           'another server uses the directory',
  UNSAFE_DIRECTORY: 'the directory is not safe to use',
} as const satisfies Record<string, string>;

export type StorageErrorCode = keyof typeof table;

export interface ZxidRange {
  readonly from: bigint;
  /** Absent where nothing in the files says how far it went. */
  readonly to?: bigint | undefined;
}

export interface StorageErrorOptions extends ErrorOptions {
  readonly file?: string | undefined;
  readonly offset?: number | undefined;
  /** What is lost, or would be. */
  readonly zxids?: ZxidRange | undefined;
  /** The last transaction that is certainly on disk. */
  readonly lastDurableZxid?: bigint | undefined;
}

export class StorageError extends Error {
  override readonly name = 'StorageError';
  readonly code: StorageErrorCode;
  readonly file: string | undefined;
  readonly offset: number | undefined;
  readonly zxids: ZxidRange | undefined;
  readonly lastDurableZxid: bigint | undefined;
  readonly #detail: string;

  constructor(code: StorageErrorCode, detail: string, options: StorageErrorOptions = {}) {
    super(
      `${code}: ${table[code]}: ${detail}${placeText(options)}`,
      'cause' in options ? { cause: options.cause } : undefined,
    );
    this.code = code;
    this.#detail = detail;
    this.file = options.file;
    this.offset = options.offset;
    this.zxids = options.zxids;
    this.lastDurableZxid = options.lastDurableZxid;
  }

  /** What is wrong, without what the code says and without the place: the message has all three. */
  get detail(): string {
    return this.#detail;
  }
}

export function isStorageError<C extends StorageErrorCode>(
  error: unknown,
  ...codes: C[]
): error is StorageError & { code: C } {
  return (
    error instanceof StorageError &&
    (codes.length === 0 || (codes as readonly StorageErrorCode[]).includes(error.code))
  );
}

export function zxidText(zxid: bigint): string {
  return `0x${BigInt.asUintN(64, zxid).toString(16)}`;
}

export function rangeText({ from, to }: ZxidRange): string {
  if (to === undefined) return `${zxidText(from)} and on`;
  return from === to ? zxidText(from) : `${zxidText(from)} to ${zxidText(to)}`;
}

function placeText({ file, offset, zxids, lastDurableZxid }: StorageErrorOptions): string {
  const parts = [
    file,
    offset === undefined ? undefined : `offset ${offset}`,
    zxids === undefined ? undefined : `zxid ${rangeText(zxids)}`,
    lastDurableZxid === undefined ? undefined : `last durable zxid ${zxidText(lastDurableZxid)}`,
  ].filter((part) => part !== undefined);
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`;
}
