/** How a command ends, for scripts and supervisors. docs/commands.md has the table too. */

// biome-ignore format: a table is read down its columns
export const exitCodes = {
  ok:            0,
  /** We are wrong: a failed invariant, an error that nobody foresaw. */
  bug:           1,
  /** The command line or the configuration. */
  usage:         2,
  /** The address is taken, or not ours to listen on. */
  address:       3,
  /** The data directory, or another file or folder here: not there, not writable, not ours, in use, damaged. */
  data:          4,
  /** The server had to stop by itself: it could not write its log. */
  stopped:       5,
  /** The server said no: no such node, another version, not permitted. Nothing was changed. */
  refused:       6,
  /** No server could be reached, or none would have us. */
  unreachable:   7,
  /** The link broke or the time was over: a write may or may not have happened. */
  unknown:       8,
  /** Somebody was asked, and said no. */
  declined:      9,
  /** The output could not be written. */
  output:       10,
  /** Ctrl-C. */
  interrupted: 130,
} as const;

/** Ends the command with one sentence that says what is wrong and what to do. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exitCode: number;

  constructor(kind: keyof typeof exitCodes, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCodes[kind];
  }
}
