/** Certificates that are read again: on SIGHUP, and where that is asked for whenever their files change. */

import { type FSWatcher, watch } from 'node:fs';
import { dirname, resolve } from 'node:path';
import {
  type ReadJavaStore,
  type RunningServer,
  readTls,
  type ServerConfig,
  tlsFiles,
} from '../server/index.ts';
import { readPlainFileSync } from '../support/index.ts';
import { tell } from './serve-words.ts';

/** SIGHUP ends who does not listen, and a supervisor may send it while files are still being read. */
export class HangUps {
  #hear: (() => void) | undefined;
  #isMissed = false;

  constructor() {
    process.on('SIGHUP', () => {
      if (this.#hear === undefined) this.#isMissed = true;
      else this.#hear();
    });
  }

  /** At once, too, for one that came before. */
  listen(hear: () => void): void {
    this.#hear = hear;
    if (this.#isMissed) hear();
  }
}

/** Writers replace files in several steps; the last of them counts. */
const settleMs = 200;

export function reloadCertificates(
  config: ServerConfig,
  server: RunningServer,
  hangUps: HangUps,
  readJavaStore?: ReadJavaStore,
): { close(): void } {
  const reload = () => {
    if (server.securePort === undefined) return;
    try {
      server.setTls(readTls(config, readJavaStore));
      tell('certificates were read again; links that are open keep theirs');
    } catch (error) {
      tell(`certificates stay as they were: ${(error as Error).message}`);
    }
  };
  hangUps.listen(reload);
  if (server.securePort === undefined || !config.must('client.certReload')) return { close() {} };
  const files = tlsFiles(config);
  const contents = () => files.map((file) => readPlainFileSync(file).toString('latin1')).join('\n');
  let known = contents();
  let timer: NodeJS.Timeout | undefined;
  const look = () => {
    try {
      const now = contents();
      if (now === known) return;
      known = now;
    } catch {
      return; // between two steps of a replacement; the next of them is seen as well
    }
    reload();
  };
  // Folders, not files: a file that is replaced by another is watched no more.
  const watchers: FSWatcher[] = [];
  const unwatched = ({ code }: NodeJS.ErrnoException) =>
    tell(`certificates can't be watched (${code}): only SIGHUP has them read again`);
  try {
    for (const folder of new Set(files.map((file) => dirname(resolve(file))))) {
      const watcher = watch(folder, () => {
        clearTimeout(timer);
        timer = setTimeout(look, settleMs);
      });
      watchers.push(watcher.on('error', unwatched));
    }
  } catch (error) {
    unwatched(error as Error); // as where others on the machine watch all that may be; Apache goes on, too
  }
  return {
    close() {
      clearTimeout(timer);
      for (const watcher of watchers) watcher.close();
    },
  };
}
