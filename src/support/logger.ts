/**
 * What is written to, when something is worth a line: pino fits, and so does whatever has these four.
 * Silent unless one is handed in. Text from outside is made printable first, and no secret is ever a
 * field.
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
