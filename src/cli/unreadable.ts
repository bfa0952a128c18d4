/**
 * Nodes that may not be read, in a copy or a backup.
 *
 * Without `--skip-unreadable` the first one ends the command, because a copy that lacks nodes in silence is worse
 * than none. With it each is left out with all below it, named, and the exit code is 1.
 */

import type { Context, OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { escaped, foundCode } from './output.ts';

export class Unreadable {
  readonly #paths = new Set<string>();
  readonly #output: Context['output'];
  readonly #isSkipped: boolean;

  constructor({ output }: Context, options: OptionValues) {
    this.#output = output;
    this.#isSkipped = options.skipUnreadable === true;
  }

  /** For `Client.walk`. The same node may be met in every round of a backup, and is told once. */
  readonly met = (path: string): void => {
    if (!this.#isSkipped) {
      throw new CommandError(
        'refused',
        `NO_AUTH: ${escaped(path)} may not be read; authenticate with --auth, or leave out such nodes with --skip-unreadable`,
      );
    }
    if (this.#paths.has(path)) return;
    this.#paths.add(path);
    this.#output.tell(`${escaped(path)} may not be read: left out, with all below it`);
  };

  get paths(): readonly string[] {
    return [...this.#paths];
  }

  /** What a command that went well otherwise exits with. */
  get exitCode(): number {
    return this.#paths.size > 0 ? foundCode : exitCodes.ok;
  }
}
