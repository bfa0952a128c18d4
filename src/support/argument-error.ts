import { printable } from './printable.ts';

/** The caller gave something that cannot be sent. Nothing has left this process. */
export class ArgumentError extends TypeError {
  override readonly name = 'ArgumentError';
  readonly code = 'INVALID_ARGUMENT';
  readonly argument: string;

  constructor(argument: string, why: string) {
    super(`${printable(argument)}: ${printable(why)}`);
    this.argument = argument;
  }
}
