/** Java key stores, which Node can't read: read by jks-js where a configuration names one, as PEM for the server. */

import {
  ConfigError,
  namesJavaStore,
  type ReadJavaStore,
  type ServerConfig,
} from '../server/index.ts';

/** Undefined where the configuration names none, so that what reads them is loaded only when needed. */
export async function javaStoreReader(config: ServerConfig): Promise<ReadJavaStore | undefined> {
  if (!namesJavaStore(config)) return undefined;
  const { default: jks } = await import('jks-js');
  return (bytes, password, file) => {
    let entries: ReturnType<typeof jks.toPem>;
    try {
      entries = jks.toPem(bytes, password);
    } catch (cause) {
      throw new ConfigError(`${file} can't be read as a Java key store: ${reasonOf(cause)}`, {
        cause,
      });
    }
    const all = Object.values(entries);
    return {
      keys: all.flatMap(({ key, cert }) => (key && cert ? [{ key, cert }] : [])),
      trusted: all.flatMap(({ ca }) => ca ?? []),
    };
  };
}

/** What jks-js says of the mistakes that people make. */
const reasons: readonly [said: RegExp, why: string][] = [
  [/password|cannot recover key|MAC could not be verified/i, 'the password is wrong, or missing'],
  [/invalid keystore format|buffer bounds|out of range/i, 'it is damaged, or of another kind'],
];

function reasonOf(error: unknown): string {
  const { message } = error as Error;
  return reasons.find(([said]) => said.test(message))?.[1] ?? message;
}
