/** Where the lines of the audit log go: a file, or standard output. */

import { appendFileSync, constants } from 'node:fs';
import { Audit, type Auth, type ServerConfig } from '../server/index.ts';
import { CommandError } from './exit-codes.ts';
import { tell } from './serve-words.ts';

/** So many bytes of an audit log wait for who reads standard output; then no more do until they are gone. */
const unreadBytesMax = 1024 * 1024;

const { O_APPEND, O_CREAT, O_NONBLOCK = 0, O_WRONLY } = constants;
/** A named pipe that nobody reads is an error, at once: to wait for a reader would stop the server. */
const appendFlags = (O_APPEND | O_CREAT | O_NONBLOCK | O_WRONLY) as unknown as string;

export type BoundAudit = Audit & { bind(auth: Auth): void };

/**
 * Where lines can't be written when it starts, it does not. Later it is said, and the server goes on: no
 * write is lost with its line, and Apache's logging goes on as well.
 */
export function auditOf(config: ServerConfig): BoundAudit | undefined {
  if (!config.must('audit.enable')) return undefined;
  const file = config.get('drover.auditFile') ?? '-';
  let gone: Error | undefined; // a pipe tells later, and for good
  let isUnread = false;
  if (file === '-') {
    process.stdout.on('error', (error) => {
      gone = error;
    });
  }
  const append = (text: string) => {
    if (file === '-') {
      if (gone !== undefined) throw gone;
      isUnread = process.stdout.writableLength > (isUnread ? 0 : unreadBytesMax);
      if (isUnread) throw Object.assign(new Error('nobody reads it'), { code: 'EAGAIN' });
      process.stdout.write(text);
    } else appendFileSync(file, text, { mode: 0o600, flag: appendFlags });
  };
  const why = (error: unknown) =>
    `the audit log ${file === '-' ? 'on standard output' : file} can't be written (${(error as NodeJS.ErrnoException).code})`;
  try {
    append('');
  } catch (cause) {
    throw new CommandError('data', `${why(cause)}; name another file`, { cause });
  }
  let lost = 0;
  const write = (line: string) => {
    try {
      append(`${new Date().toISOString()}\t${line}\n`);
    } catch (error) {
      if (lost === 0) tell(`${why(error)}; the server goes on without`);
      lost += 1;
      return;
    }
    if (lost > 0) tell(`the audit log is written again, and lacks ${lost} lines`);
    lost = 0;
  };
  let auth: Auth | undefined;
  const audit = new Audit(write, () => auth!);
  return Object.assign(audit, {
    bind(to: Auth) {
      auth = to;
    },
  });
}
