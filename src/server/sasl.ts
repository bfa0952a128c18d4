/**
 * SASL on a client's link: one negotiation for each, DIGEST-MD5, as Apache has it with a JAAS file.
 *
 * In: the token of a sasl op. Out: the token to answer with and, with the last one, who it is. A proof
 * that does not hold ends the negotiation, and the link with it: there is no second guess.
 */

import { ProtocolError } from '../jute/index.ts';
import { DigestMd5Server, type Id, isZkError } from '../protocol/index.ts';
import { superId } from './auth.ts';
import type { Connection } from './connection.ts';

export interface SaslOptions {
  /** The password of a user, or undefined for one who is none. */
  readonly passwordOf: (username: string) => string | undefined;
  /** Users who may do everything: `zookeeper.superUser`, `zookeeper.superUser.1` and so on. */
  readonly superUser?: string | readonly string[] | undefined;
}

export interface SaslStep {
  readonly token: Buffer | null;
  readonly ids: readonly Id[];
}

export class Sasl {
  readonly #options: SaslOptions;
  readonly #negotiations = new WeakMap<Connection, DigestMd5Server>();

  constructor(options: SaslOptions) {
    this.#options = options;
  }

  /** The known user that a connection's last token names, proven or not. Undefined where it names none. */
  claimedBy(connection: Connection): string | undefined {
    return this.#negotiations.get(connection)?.claimedId;
  }

  #isSuper(user: string): boolean {
    const { superUser = [] } = this.#options;
    return typeof superUser === 'string' ? superUser === user : superUser.includes(user);
  }

  /** Null: it failed. */
  step(connection: Connection, token: Buffer | null): SaslStep | null {
    let negotiation = this.#negotiations.get(connection);
    if (negotiation === undefined) {
      negotiation = new DigestMd5Server({ passwordOf: this.#options.passwordOf });
      this.#negotiations.set(connection, negotiation);
    }
    try {
      const answer = negotiation.step(token ?? Buffer.alloc(0));
      const user = negotiation.authorizedId;
      if (user === undefined) return { token: answer, ids: [] };
      const id = { scheme: 'sasl', id: user };
      return {
        token: answer,
        ids: this.#isSuper(user) ? [id, superId] : [id],
      };
    } catch (error) {
      if (error instanceof ProtocolError || isZkError(error, 'AUTH_FAILED')) return null;
      throw error;
    }
  }
}
