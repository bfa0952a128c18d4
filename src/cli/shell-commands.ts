/** What means something in a shell alone: cd, pwd, history, redo, printwatches, connect, close, quit. */

import { ZkError } from '../client/index.ts';
import type { Context, ShellControl } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { helpText } from './help.ts';
import { escaped } from './output.ts';

type Args = readonly string[];

function shellOf({ shell }: Context): ShellControl {
  if (shell === null) throw new CommandError('usage', 'this means something in drover shell alone');
  return shell;
}

export async function cd(context: Context, [given]: Args): Promise<number> {
  const shell = shellOf(context);
  const path = given === '-' ? shell.previousCwd : context.path(given ?? '/');
  const client = await context.client();
  if ((await client.exists(path, { signal: context.signal })) === null) {
    throw new ZkError('NO_NODE', { path });
  }
  shell.previousCwd = shell.cwd;
  shell.cwd = path;
  if (context.output.isJson) context.output.record({ cwd: path });
  return exitCodes.ok;
}

export async function pwd({ output, cwd }: Context): Promise<number> {
  if (output.isJson) output.record({ cwd });
  else output.line(escaped(cwd));
  return exitCodes.ok;
}

/** As many as zkCli shows: ten, and this line itself. */
const shownLines = 10;

export async function history(context: Context): Promise<number> {
  const { lines } = shellOf(context);
  const { output } = context;
  for (let i = Math.max(0, lines.length - 1 - shownLines); i < lines.length; i++) {
    const line = lines[i];
    if (line === undefined) continue;
    if (output.isJson) output.record({ number: i, line });
    else output.line(`${i} - ${escaped(line)}`);
  }
  return exitCodes.ok;
}

export async function redo(context: Context, [given = '']: Args): Promise<number> {
  const shell = shellOf(context);
  const number = /^\d+$|^0x[0-9a-f]+$/i.test(given) ? Number(given) : -1;
  const line = shell.lines[number];
  if (line === undefined || number >= shell.lines.length - 1) {
    throw new CommandError('usage', 'Command index out of range; history shows the numbers');
  }
  if (/^\s*redo\b/.test(line)) throw new CommandError('usage', 'No redoing redos');
  (shell.lines as string[])[shell.lines.length - 1] = line; // history shows what was done
  return shell.run(line);
}

export async function printWatches(context: Context, [given]: Args): Promise<number> {
  const shell = shellOf(context);
  const { output } = context;
  if (given !== undefined) shell.printWatches = given === 'on';
  const state = shell.printWatches ? 'on' : 'off';
  if (output.isJson) output.record({ printwatches: state });
  else if (given === undefined) output.line(`printwatches is ${state}`);
  return exitCodes.ok;
}

export async function connect(context: Context, [servers]: Args): Promise<number> {
  await shellOf(context).reconnect(servers);
  const client = await context.client();
  if (context.output.isJson) {
    context.output.record({ server: client.server, sessionId: client.sessionId });
  } else context.output.tell(`connected to ${client.server ?? 'a server'}`);
  return exitCodes.ok;
}

export async function close(context: Context): Promise<number> {
  await shellOf(context).disconnect();
  if (context.output.isJson) context.output.record({ closed: true });
  return exitCodes.ok;
}

export async function quit(context: Context): Promise<number> {
  shellOf(context).quit();
  if (context.output.isJson) context.output.record({ quit: true });
  return exitCodes.ok;
}

export async function help({ output, commands }: Context, [name]: Args): Promise<number> {
  const text = helpText(commands, name);
  if (output.isJson) {
    const { tableJson } = await import('./help.ts');
    for (const each of tableJson(commands, name)) output.record(each);
  } else output.write(text);
  return exitCodes.ok;
}
