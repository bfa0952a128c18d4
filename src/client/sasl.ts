/** SASL DIGEST-MD5: a user and a password that the server has in its JAAS file. */

import { DigestMd5Client } from '../protocol/index.ts';
import { ArgumentError, checkOptions } from '../support/index.ts';
import type { SaslMechanism } from './auth.ts';
import { digestMd5Table } from './option-tables.ts';

export interface DigestMd5Options {
  readonly username: string;
  readonly password: string;
  /** Which of the server's realms; its first unless said. */
  readonly realm?: string;
}

export function digestMd5(options: DigestMd5Options): SaslMechanism {
  checkOptions('digestMd5', options, digestMd5Table);
  for (const name of ['username', 'password'] as const) {
    if (typeof options[name] !== 'string') throw new ArgumentError(name, 'a string is wanted');
  }
  return () => {
    const client = new DigestMd5Client(options);
    return { start: async () => client.start(), step: async (token) => client.step(token) };
  };
}
