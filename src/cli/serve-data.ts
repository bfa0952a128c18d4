/** Whether the folders that a server is given can be a data directory's, before anything is made in them. */

import { readdirSync, statSync } from 'node:fs';
import { join, resolve, sep } from 'node:path';
import type { ServerConfig } from '../server/index.ts';
import { CommandError } from './exit-codes.ts';
import { asCommandError } from './serve-errors.ts';

/** What may stand beside version-2: Apache puts it there, or who keeps the configuration with the data. */
const apacheFiles =
  /^(version-2|myid|initialize|zookeeper_server\.pid|lost\+found|.*\.cfg(\.dynamic.*)?|\..*)$/;

/** A home folder, say, is no data directory; who points at one has mistyped. */
export function checkDataDir(config: ServerConfig): void {
  if (config.must('drover.inMemory')) return;
  const folders = [config.must('dataDir'), config.get('dataLogDir')].filter(
    (one) => one !== undefined,
  );
  for (const folder of folders) {
    const status = statusOf(folder);
    const versionFolder = join(folder, 'version-2');
    if (!config.must('datadir.autocreate') && statusOf(versionFolder) === undefined) {
      throw new CommandError(
        'data',
        `${versionFolder} is not there, and datadir.autocreate=false; make it, or name another folder with --data`,
      );
    }
    if (status === undefined) {
      refuseAnothersName(folder);
      continue;
    }
    if (!status.isDirectory()) {
      throw new CommandError('data', `${folder} is no folder; name one with --data`);
    }
    const names = readdirOrFail(folder);
    const isOurs = (name: string) => folders.some((one) => isWithin(one, join(folder, name)));
    const foreign = names.find((name) => !apacheFiles.test(name) && !isOurs(name));
    if (foreign !== undefined && !names.includes('version-2')) {
      throw new CommandError(
        'data',
        `${folder} holds other things (${foreign}) and no version-2, so it is no data directory; name another one with --data, or an empty one`,
      );
    }
  }
}

/** Logs may lie in a folder of the data directory, and the other way round. */
const isWithin = (path: string, folder: string) =>
  `${resolve(path)}${sep}`.startsWith(`${resolve(folder)}${sep}`);

/** Apache reads a zoo.cfg as Latin-1: what is `dä` to us is `dÃ¤` there. To start empty would lose all. */
function refuseAnothersName(folder: string): void {
  const asJava = Buffer.from(folder).toString('latin1');
  if (asJava === folder || statusOf(asJava) === undefined) return;
  throw new CommandError(
    'data',
    `${folder} is not there, and ${asJava} is, as Java reads the same bytes; rename it, or name it with --data or --data-log`,
  );
}

function statusOf(folder: string) {
  try {
    return statSync(folder, { throwIfNoEntry: false });
  } catch (error) {
    throw asCommandError(error);
  }
}

function readdirOrFail(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    throw asCommandError(error);
  }
}
