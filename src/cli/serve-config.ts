/** What a server is told: flags, -D arguments, variables and a zoo.cfg, made one configuration. */

import { join } from 'node:path';
import { readConfig, type ServerConfig } from '../server/index.ts';
import { readPlainFileSync } from '../support/index.ts';
import type { OptionValues } from './command.ts';
import { CommandError } from './exit-codes.ts';
import { isLogLevel, LazyLogger } from './logger.ts';
import { asCommandError } from './serve-errors.ts';
import { tell } from './serve-words.ts';

/** Flags and the keys that they stand for. */
const keyOfFlag = {
  port: 'clientPort',
  address: 'clientPortAddress',
  data: 'dataDir',
  dataLog: 'dataLogDir',
  users: 'drover.usersFile',
  words: '4lw.commands.whitelist',
  adminPort: 'admin.serverPort',
  metricsPort: 'metricsProvider.httpPort',
  audit: 'drover.auditFile',
  logLevel: 'drover.logLevel',
  insecureBind: 'drover.insecureBind',
  inMemory: 'drover.inMemory',
  unsafeNoFsync: 'drover.unsafeNoFsync',
  salvage: 'drover.salvage',
} as const;

export function configOf([file, ...more]: readonly string[], flags: OptionValues): ServerConfig {
  if (more.length > 0) throw new CommandError('usage', 'one zoo.cfg is enough');
  const given: Record<string, string> = {};
  for (const [flag, key] of Object.entries(keyOfFlag)) {
    const value = flags[flag];
    if (value !== undefined) given[key] = String(value);
  }
  if (flags.audit !== undefined) given['audit.enable'] = 'true';
  if (flags.metricsPort !== undefined) given['metricsProvider.className'] = 'Prometheus';
  const pair = (flag: string, text: string): [string, string] => {
    const at = text.indexOf('=');
    // Not what stands there: it may be a password behind something else than an =.
    if (at < 1) throw new CommandError('usage', `${flag} wants name=value, with an = between them`);
    return [text.slice(0, at), text.slice(at + 1)];
  };
  for (const text of (flags.limit ?? []) as readonly string[]) {
    const [name, value] = pair('--limit', text);
    given[`drover.limits.${name}`] = value;
  }
  for (const text of (flags.set ?? []) as readonly string[]) {
    const [name, value] = pair('--set', text);
    given[name] = value;
  }
  try {
    return readConfig({
      flags: given,
      javaArguments: (flags.D ?? []) as readonly string[],
      environment: process.env,
      file: file === undefined ? undefined : { name: file, text: readFile(file) },
      myid: readMyId,
    });
  } catch (error) {
    throw asCommandError(error);
  }
}

/** Apache keeps it there on servers of an ensemble. */
function readMyId(dataDir: string): string | undefined {
  try {
    return readPlainFileSync(join(dataDir, 'myid')).toString('utf8').split('\n', 1)[0];
  } catch {
    return undefined;
  }
}

function readFile(file: string): string {
  try {
    return readPlainFileSync(file).toString('utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new CommandError('usage', `${file} can't be read (${code}); name a zoo.cfg, or none`, {
      cause,
    });
  }
}

export function loggerOf(config: ServerConfig): LazyLogger {
  const level = config.must('drover.logLevel');
  if (isLogLevel(level)) return new LazyLogger(level);
  throw new CommandError('usage', `--log-level ${level}: silent, error, warn, info or debug`);
}

export function warnLoudly(config: ServerConfig): void {
  if (config.must('drover.inMemory')) {
    tell('IN MEMORY: nothing is kept; all of it is gone when this process ends');
  } else if (config.must('drover.unsafeNoFsync') || config.must('forceSync') === 'no') {
    tell(
      'UNSAFE: writes are acknowledged before they are on disk; a loss of power takes them away',
    );
  }
  if (config.must('drover.salvage')) {
    tell('SALVAGE: where files are damaged, what can not be read is given up');
  }
  if (config.must('skipACL') === 'yes') tell('UNSAFE: skipACL=yes, no permission is checked');
}
