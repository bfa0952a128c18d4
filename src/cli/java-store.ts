/** What is in a key store of Java's, as PEM. Loaded only where a configuration names one. */

import jks from 'jks-js';
import { ConfigError, type ReadJavaStore } from '../server/index.ts';

export const readJavaStore: ReadJavaStore = (bytes, password, file) => {
  let entries: ReturnType<typeof jks.toPem>;
  try {
    entries = jks.toPem(bytes, password);
  } catch (cause) {
    const why = `${file} can't be read as a Java key store: ${reasonOf(cause)}`;
    throw new ConfigError(why, { cause });
  }
  const all = Object.values(entries);
  return {
    keys: all.flatMap(({ key, cert }) => (key && cert ? [{ key, cert }] : [])),
    trusted: all.flatMap(({ ca }) => ca ?? []),
  };
};

/** What jks-js says of the mistakes that people make. */
const reasons: readonly [said: RegExp, why: string][] = [
  [/password|cannot recover key|MAC could not be verified/i, 'the password is wrong, or missing'],
  [/invalid keystore format|buffer bounds|out of range/i, 'it is damaged, or of another kind'],
];

function reasonOf(error: unknown): string {
  const { message } = error as Error;
  return reasons.find(([said]) => said.test(message))?.[1] ?? message;
}
