/** A reader asked to write: two that did so would wait for each other for ever. */
export class LockUpgradeError extends Error {
  override readonly name = 'LockUpgradeError';
  readonly code = 'LOCK_UPGRADE';
  readonly path: string;

  constructor(path: string) {
    super(
      `${path}: its owner has it for reading, and a reader cannot become the writer; release the read lock first, or take the write lock first and read under it`,
    );
    this.path = path;
  }
}
