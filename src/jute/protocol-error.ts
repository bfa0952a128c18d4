/** The bytes are wrong: cut short, out of range, or not what the table says. The link is dropped. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
  readonly code = 'PROTOCOL';
}
