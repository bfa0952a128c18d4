/**
 * What the server writes its log to: pino fits, and so does whatever has these four. Nothing is
 * written unless one is handed in. Text that a client chose goes through `printable` first, and no
 * secret is ever a field.
 */

export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

const nothing = () => {};

export const silentLogger: Logger = {
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
};
