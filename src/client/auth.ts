/**
 * Proofs of who we are. Those of a scheme are sent on every new link, before anything else is asked;
 * a SASL mechanism negotiates first of all.
 */

import type { Endpoint } from './transport.ts';

export interface AuthInfo {
  readonly scheme: string;
  readonly auth: Buffer;
}

/** One negotiation on one link. Both sides take turns until the mechanism is content. */
export interface SaslExchange {
  /** The first token, before the server said anything. Empty where the server begins. */
  start(): Promise<Buffer>;
  /** An answer to the server's token, or null when there is nothing left to say. */
  step(token: Buffer): Promise<Buffer | null>;
}

/** How to prove it by SASL. Asked anew for every link, since each negotiation is its own. */
export type SaslMechanism = (endpoint: Endpoint) => SaslExchange | Promise<SaslExchange>;
