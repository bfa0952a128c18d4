/**
 * `drover log history PATH`: the life of one node, as the logs that are left tell it.
 *
 * In: a path and the folders. Out: a row for each change, with what was before and after it as far as
 * any file tells. Where zxids are missing, or can not be read, that is told: a life that is told is
 * not promised to be whole.
 */

import { ProtocolError } from '../jute/index.ts';
import { openAcl, pathFault } from '../protocol/index.ts';
import {
  listSnapshots,
  mayFollow,
  type NodeState,
  type PathChange,
  pathHistory,
} from '../storage/index.ts';
import { Columns } from './columns.ts';
import type { OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { filesOf } from './file-actions.ts';
import { listOrFail, logFolderOf, readLog } from './log-read.ts';
import {
  aclJson,
  aclText,
  dataJson,
  dataText,
  escaped,
  foundCode,
  hex,
  type Output,
  timeText,
} from './output.ts';
import { folderOf, unreadable } from './snapshot.ts';

const kindTexts: Record<PathChange['kind'], string> = {
  created: 'created',
  dataSet: 'data set',
  aclSet: 'acl set',
  deleted: 'deleted',
  deletedWithSession: 'deleted with its session',
};

export async function history(
  output: Output,
  [path = '']: readonly string[],
  options: OptionValues,
): Promise<number> {
  const fault = pathFault(path);
  if (fault !== null) throw new CommandError('usage', `${escaped(path)} is no path: ${fault}`);
  if (options.data === undefined) {
    throw new CommandError('usage', 'where the logs are must be said: --data DIR');
  }
  const folder = await folderOf(String(options.data));
  const logFolder = await logFolderOf(folder, options);
  if ((await listOrFail(filesOf(output), logFolder)).length === 0) {
    const message = `no log is in ${escaped(logFolder)}; if they have a folder of their own, name it with --data-log`;
    throw new CommandError('usage', message);
  }
  const columns = output.isJson
    ? undefined
    : new Columns(output, 'ZXID', 'TIME', 'SESSION', 'CHANGE', 'VERSION', 'BEFORE', 'AFTER');
  let changes = 0;
  const known = new Knowledge();
  try {
    await pathHistory(
      folder,
      logFolder,
      path,
      (change) => {
        changes += 1;
        const { before, after } = known.of(change);
        if (columns === undefined) return output.record(changeJson(path, change, before, after));
        const show = (state: KnownState) => stateText(state, change.kind, output.shownBytes);
        columns.row(
          ...[hex(change.zxid), timeText(change.timeMs), hex(change.sessionId), kindText(change)],
          ...[String(after?.version ?? '-'), show(before), show(after)],
        );
      },
      filesOf(output),
    );
  } catch (error) {
    // The place is found below, and told.
    if (!(error instanceof ProtocolError)) throw unreadable(error, logFolder);
  }
  columns?.end();
  const { gaps, isDamaged } = await gapsOf(output, folder, logFolder);
  if (columns === undefined) output.record({ record: 'end', path, changes, gaps });
  else if (changes === 0) output.tell(`no log that is left tells of ${escaped(path)}`);
  await output.drained();
  for (const gap of gaps) output.tell(gap);
  return isDamaged ? foundCode : exitCodes.ok;
}

/** What is known of a node: a field that no file tells is not there, and undefined is nothing at all. */
type KnownState = Partial<NodeState> | null | undefined;

/**
 * Where the first that is told of a node is not its creation, the log has one field of it and the rest
 * stays unknown until it is told too.
 */
class Knowledge {
  #fields: readonly (keyof NodeState)[] | undefined;

  of({ kind, before, after }: PathChange): { before: KnownState; after: KnownState } {
    const knownBefore = this.#only(before);
    if (after === null || kind === 'created') this.#fields = undefined;
    else if (before === undefined) this.#fields = kind === 'aclSet' ? ['acl'] : ['data', 'version'];
    else if (this.#fields !== undefined) {
      const told = kind === 'aclSet' ? (['acl'] as const) : (['data', 'version'] as const);
      this.#fields = [...new Set([...this.#fields, ...told])];
    }
    return { before: knownBefore, after: this.#only(after) };
  }

  #only(state: NodeState | null | undefined): KnownState {
    if (!state || this.#fields === undefined) return state;
    return Object.fromEntries(this.#fields.map((field) => [field, state[field]]));
  }
}

function kindText({ kind, part, after }: PathChange): string {
  const owned = kind === 'created' && after !== null && after.ephemeralOwner !== 0n;
  const how = owned ? ' ephemeral' : '';
  return `${kindTexts[kind]}${how}${part === null ? '' : `, part ${part} of a multi`}`;
}

function stateText(state: KnownState, kind: PathChange['kind'], shownBytes: number): string {
  if (state === null) return 'none';
  if (kind === 'aclSet') return state && 'acl' in state ? aclText(state.acl ?? openAcl) : '?';
  return state && 'data' in state ? dataText(state.data ?? null, shownBytes) : '?';
}

function changeJson(
  path: string,
  { zxid, timeMs, sessionId, cxid, kind, part, file, offset }: PathChange,
  before: KnownState,
  after: KnownState,
): object {
  return {
    ...{ record: 'change', path, zxid, time: timeText(timeMs), sessionId, cxid, kind, part },
    ...{ isBeforeKnown: before !== undefined, before: stateJson(before), after: stateJson(after) },
    ...{ file, offset },
  };
}

function stateJson(state: KnownState): object | null {
  if (!state) return null;
  return {
    ...('data' in state ? { data: dataJson(state.data ?? null) } : {}),
    ...('acl' in state ? { acl: aclJson(state.acl ?? openAcl) } : {}),
    ...('version' in state ? { version: state.version } : {}),
    ...('ephemeralOwner' in state ? { ephemeralOwner: state.ephemeralOwner } : {}),
  };
}

/** What the life of a node may lack: stretches of zxids that no log holds, or that can't be read. */
async function gapsOf(
  output: Output,
  folder: string,
  logFolder: string,
): Promise<{ gaps: string[]; isDamaged: boolean }> {
  const fs = filesOf(output);
  const gaps: string[] = [];
  let isDamaged = false;
  const files = await listOrFail(fs, logFolder);
  const older = (await listSnapshots(fs, folder)).find(({ zxid }) => zxid < files[0]!.zxid);
  let last = files[0]!.zxid === 1n ? 0n : older?.zxid;
  if (last === undefined) {
    gaps.push(
      `what was before zxid ${hex(files[0]!.zxid)} is in no file, so a first change may lack what was before it`,
    );
  }
  for (const file of files) {
    const read = await readLog(fs, file, file === files.at(-1), () => {});
    if (read.end === 'damaged') {
      isDamaged = true;
      gaps.push(read.remark!);
    } else if (read.end === 'moving') output.tell(read.remark!);
    if (read.firstZxid === null) continue;
    if (last !== undefined && isGap(last, read.firstZxid)) {
      gaps.push(
        `zxids ${hex(last + 1n)} to ${hex(read.firstZxid - 1n)} are in no log, and what happened then is not told`,
      );
    }
    last = read.lastZxid!;
  }
  return { gaps, isDamaged };
}

function isGap(last: bigint, next: bigint): boolean {
  return next > last && !mayFollow(next, last);
}
