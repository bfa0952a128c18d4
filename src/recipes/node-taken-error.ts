/** A path that was to be ours belongs to a living session of somebody else. */
export class NodeTakenError extends Error {
  override readonly name = 'NodeTakenError';
  readonly code = 'NODE_TAKEN';
  readonly path: string;
  /** The session that has it. */
  readonly owner: bigint;

  constructor(path: string, owner: bigint, wasReplaced: boolean) {
    const what = wasReplaced ? 'was taken over by' : 'belongs to';
    super(
      `${path} ${what} session 0x${owner.toString(16)}; give each process a name of its own, or end the other one`,
    );
    this.path = path;
    this.owner = owner;
  }
}
