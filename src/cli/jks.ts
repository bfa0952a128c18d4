/** Java key stores, which Node can't read: what reads them is loaded where a configuration names one. */

import { namesJavaStore, type ReadJavaStore, type ServerConfig } from '../server/index.ts';

export async function javaStoreReader(config: ServerConfig): Promise<ReadJavaStore | undefined> {
  if (!namesJavaStore(config)) return undefined;
  const { readJavaStore } = await import('./java-store.ts');
  return readJavaStore;
}
