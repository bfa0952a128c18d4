/**
 * Named places to connect to, in one file of the user's: $XDG_CONFIG_HOME/drover/contexts.json.
 *
 * In: the environment. Out: the contexts, which one is selected and which was before it. The file is
 * readable by its owner alone, and is replaced whole or not at all. It holds no secret unless somebody
 * asked for that; with one in it, a file that others can read is refused.
 */

import { randomBytes } from 'node:crypto';
import { open, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { readPlainFile } from '../support/index.ts';
import { CommandError } from './exit-codes.ts';
import { makeFolders } from './make-folders.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface SavedContext {
  readonly name: string;
  readonly servers: string;
  readonly readOnly?: boolean;
  /** In clear text: only if the user asked to store it. */
  readonly auth?: readonly { readonly scheme: string; readonly auth: string }[];
  /** File names. */
  readonly tls?: {
    readonly ca?: string;
    readonly cert?: string;
    readonly key?: string;
    readonly serverName?: string;
  };
  readonly saslUser?: string;
}

export interface Contexts {
  readonly version: 1;
  readonly selected: string | null;
  /** What `context use -` goes back to. */
  readonly previous: string | null;
  readonly contexts: Readonly<Record<string, Omit<SavedContext, 'name'>>>;
}

const none: Contexts = { version: 1, selected: null, previous: null, contexts: {} };
const othersMayRead = 0o077;
export const contextName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export function contextsFile({ XDG_CONFIG_HOME, HOME }: Environment): string {
  const base = XDG_CONFIG_HOME || join(HOME || homedir(), '.config');
  return join(base, 'drover', 'contexts.json');
}

/** The one of this name, or the selected one; null where none is selected. */
export async function selectedContext(
  environment: Environment,
  name?: string,
): Promise<SavedContext | null> {
  const { selected, contexts } = await readContexts(environment);
  const wanted = name ?? selected;
  if (wanted === null) return null;
  const found = Object.hasOwn(contexts, wanted) ? contexts[wanted] : undefined;
  if (found !== undefined) return { ...found, name: wanted };
  const known = Object.keys(contexts).sort().join(', ') || 'none';
  throw new CommandError('usage', `no context ${JSON.stringify(wanted)}; there is ${known}`);
}

/** For completion. */
export async function contextNames(environment: Environment): Promise<string[]> {
  return Object.keys((await readContexts(environment)).contexts).sort();
}

export async function readContexts(environment: Environment): Promise<Contexts> {
  const file = contextsFile(environment);
  let text: string;
  try {
    text = (await readPlainFile(file)).toString('utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return none;
    throw new CommandError('usage', `${file} can't be read: ${error}`, { cause: error });
  }
  const contexts = parsed(text, file);
  const hasSecrets = Object.values(contexts.contexts).some(({ auth }) => auth !== undefined);
  if (hasSecrets && process.platform !== 'win32' && (await stat(file)).mode & othersMayRead) {
    throw new CommandError(
      'usage',
      `${file} holds passwords and others can read it; chmod 600 ${file}`,
    );
  }
  return contexts;
}

function parsed(text: string, file: string): Contexts {
  try {
    const value = JSON.parse(text) as Contexts;
    const isRight =
      value.version === 1 &&
      typeof value.contexts === 'object' &&
      Object.values(value.contexts).every(({ servers }) => typeof servers === 'string');
    if (isRight) return { ...none, ...value };
  } catch {
    // as below
  }
  throw new CommandError('usage', `${file} is not what drover wrote; mend it or move it away`);
}

export async function writeContexts(environment: Environment, contexts: Contexts): Promise<void> {
  const file = contextsFile(environment);
  await makeFolders(dirname(file), 0o700);
  const temporary = `${file}.${randomBytes(4).toString('hex')}`;
  try {
    const handle = await open(temporary, 'wx', 0o600);
    try {
      await handle.writeFile(`${JSON.stringify(contexts, null, 2)}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
