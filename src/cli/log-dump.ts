/**
 * `drover log dump FILE|DIR`: every transaction of a log, or of all logs of a folder, oldest first.
 *
 * In: a log's file or a folder. Out: a row for each transaction, and one for each part of a multi; with
 * --json a record for each, and one at the end of each file. How each file ended is told at the end,
 * and exit code 1 says that one is damaged.
 */

import { basename, dirname } from 'node:path';
import { errorCodeOf, openAcl, type TxnBody } from '../protocol/index.ts';
import {
  type DescribedTxn,
  type FileSystem,
  type LogFile,
  parseLogName,
} from '../storage/index.ts';
import { Columns } from './columns.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { filesOf } from './file-actions.ts';
import { listOrFail, readLog, zxidOrNone } from './log-read.ts';
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
import { folderOf, isFolder } from './snapshot.ts';

export async function dump(output: Output, [target = '']: readonly string[]): Promise<number> {
  const { files, newest } = await logFiles(filesOf(output), target);
  const columns = output.isJson
    ? undefined
    : new Columns(output, 'ZXID', 'TIME', 'SESSION', 'CXID', 'TYPE', 'PATH', 'DETAIL');
  let isDamaged = false;
  const remarks: string[] = [];
  for (const file of files) {
    const isNewest = file.name === newest;
    const read = await readLog(filesOf(output), file, isNewest, (txn) =>
      columns === undefined ? output.record(txnJson(txn)) : rows(columns, txn, output.shownBytes),
    );
    const { entries, firstZxid, lastZxid, end, offset, remark } = read;
    isDamaged ||= end === 'damaged';
    if (columns === undefined) {
      const span = { transactions: entries, firstZxid, lastZxid };
      output.record({ record: 'end', file: file.path, ...span, end, offset, remark });
    } else if (remark === null) {
      const span = entries === 0 ? '' : `, ${zxidOrNone(firstZxid)} to ${zxidOrNone(lastZxid)}`;
      remarks.push(`${escaped(file.path)}: ${entries} transactions${span}`);
    }
    if (remark !== null) remarks.push(remark);
  }
  columns?.end();
  await output.drained();
  for (const remark of remarks) output.tell(remark);
  return isDamaged ? foundCode : exitCodes.ok;
}

async function logFiles(
  fs: FileSystem,
  target: string,
): Promise<{ files: readonly LogFile[]; newest: string | undefined }> {
  if (await isFolder(target)) {
    const folder = await folderOf(target);
    const files = await listOrFail(fs, folder);
    if (files.length > 0) return { files, newest: files.at(-1)!.name };
    throw new CommandError('usage', `no log is in ${escaped(folder)}; name its dataLogDir`);
  }
  const file = parseLogName(dirname(target), basename(target));
  if (file === null) {
    const message = `${escaped(target)} is not named as a log is: log.<its first zxid in hex>`;
    throw new CommandError('usage', message);
  }
  return { files: [file], newest: (await listOrFail(fs, dirname(target))).at(-1)?.name };
}

/** A multi has a row of its own and one for each thing it does. */
function rows(columns: Columns, txn: DescribedTxn, shownBytes: number): void {
  const { zxid, timeMs, sessionId, cxid, body, parts } = txn;
  const head = [hex(zxid), timeText(timeMs), hex(sessionId), String(cxid)];
  columns.row(...head, body.type, pathText(body), detail(body, shownBytes));
  for (const part of parts) {
    columns.row(...head, `multi.${part.type}`, pathText(part), detail(part, shownBytes));
  }
}

function pathText({ txn }: TxnBody): string {
  return 'path' in txn ? escaped(txn.path) : '-';
}

const namedPathsMax = 5;

function detail({ type, txn }: TxnBody, shownBytes: number): string {
  switch (type) {
    case 'create':
    case 'create2':
    case 'createContainer':
    case 'createTTL': {
      const acl = aclText(txn.acl);
      return [
        'ephemeral' in txn && txn.ephemeral ? 'ephemeral ' : '',
        'ttl' in txn ? `ttl ${txn.ttl} ms ` : '',
        acl === aclText(openAcl) ? '' : `acl ${acl} `,
        `data ${dataText(txn.data, shownBytes)}`,
      ].join('');
    }
    case 'setData':
    case 'reconfig':
      return `version ${txn.version} data ${dataText(txn.data, shownBytes)}`;
    case 'setACL':
      return `version ${txn.version} acl ${aclText(txn.acl)}`;
    case 'check':
      return `version ${txn.version}`;
    case 'multi':
      return `${txn.txns.length} parts`;
    case 'error':
      return errorCodeOf(txn.err);
    case 'createSession':
      return `timeout ${txn.timeOut} ms`;
    case 'closeSession': {
      const paths = txn.paths2Delete;
      if (paths.length === 0) return '-';
      const named = shownBytes === Number.POSITIVE_INFINITY ? paths : paths.slice(0, namedPathsMax);
      const more = paths.length - named.length;
      return `deletes ${named.map(escaped).join(' ')}${more > 0 ? ` and ${more} more` : ''}`;
    }
    default:
      return '-';
  }
}

function txnJson(described: DescribedTxn): object {
  const { zxid, timeMs, sessionId, cxid, body, parts, digest, file, offset } = described;
  return {
    ...{ record: 'txn', zxid, time: timeText(timeMs), sessionId, cxid },
    ...bodyJson(body),
    ...(body.type === 'multi' ? { parts: parts.map(bodyJson) } : {}),
    ...{ digest, file, offset },
  };
}

function bodyJson({ type, txn }: TxnBody): object {
  return {
    type,
    ...('path' in txn ? { path: txn.path } : {}),
    ...('data' in txn ? { data: dataJson(txn.data) } : {}),
    ...('acl' in txn ? { acl: aclJson(txn.acl) } : {}),
    ...('version' in txn ? { version: txn.version } : {}),
    ...('ephemeral' in txn ? { ephemeral: txn.ephemeral } : {}),
    ...('ttl' in txn ? { ttlMs: Number(txn.ttl) } : {}),
    ...('timeOut' in txn ? { timeoutMs: txn.timeOut } : {}),
    ...('paths2Delete' in txn ? { deletes: txn.paths2Delete } : {}),
    ...('err' in txn ? { error: errorCodeOf(txn.err) } : {}),
  };
}
