/** `drover context add|use|list|remove`: places with names, and which of them commands go to. */

import { resolve } from 'node:path';
import { parseServers } from '../client/index.ts';
import { Columns } from './columns.ts';
import type { Context, OptionValues } from './command.ts';
import {
  type Contexts,
  contextName,
  contextsFile,
  readContexts,
  type SavedContext,
  writeContexts,
} from './contexts.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { escaped } from './output.ts';
import { refuseInBrowser } from './places.ts';

type Action = (context: Context, args: readonly string[], options: OptionValues) => Promise<number>;

// biome-ignore format: a table is read down its columns
const actions: Readonly<Record<string, { readonly usage: string; readonly args: readonly [number, number]; readonly run: Action }>> = {
  add:    { usage: 'add NAME HOSTS[/chroot] [--read-only] [--select]', args: [2, 2], run: add },
  use:    { usage: 'use NAME, or - for the one before',                args: [1, 1], run: use },
  list:   { usage: 'list',                                             args: [0, 0], run: list },
  remove: { usage: 'remove NAME',                                      args: [1, 1], run: remove },
};

export async function contextCommand(
  context: Context,
  [name = 'list', ...args]: readonly string[],
  options: OptionValues,
): Promise<number> {
  refuseInBrowser(context);
  const action = Object.hasOwn(actions, name) ? actions[name]! : undefined;
  const [least, most] = action?.args ?? [0, 0];
  if (action === undefined || args.length < least || args.length > most) {
    const usages = Object.values(actions).map(({ usage }) => `drover context ${usage}`);
    throw new CommandError('usage', `there is ${usages.join('; ')}`);
  }
  return action.run(context, args, options);
}

async function add(
  { environment, output }: Context,
  [name = '', servers = '']: readonly string[],
  options: OptionValues,
): Promise<number> {
  if (!contextName.test(name)) {
    throw new CommandError(
      'usage',
      `${escaped(name)}: a name of letters, digits, dots, dashes and underscores is wanted`,
    );
  }
  try {
    parseServers(servers);
  } catch (cause) {
    throw new CommandError('usage', (cause as Error).message, { cause });
  }
  const before = await readContexts(environment);
  const isNew = !Object.hasOwn(before.contexts, name);
  const saved = savedOf(servers, options);
  const isSelected = options.select === true || before.selected === null;
  await writeContexts(environment, {
    ...before,
    contexts: { ...before.contexts, [name]: saved },
    ...(isSelected && before.selected !== name
      ? { selected: name, previous: before.selected }
      : {}),
  });
  if (output.isJson) output.record({ name, added: isNew, ...shown(saved), selected: isSelected });
  else {
    output.tell(
      `context ${name} ${isNew ? 'added' : 'changed'}${isSelected ? ' and selected' : ''}`,
    );
    if (saved.auth !== undefined) {
      output.tell(`its password stands in clear text in ${contextsFile(environment)}`);
    }
  }
  return exitCodes.ok;
}

function savedOf(servers: string, options: OptionValues): Omit<SavedContext, 'name'> {
  const file = (name: string) => {
    const value = options[name];
    return typeof value === 'string' ? resolve(value) : undefined;
  };
  const [ca, cert, key] = [file('tlsCa'), file('tlsCert'), file('tlsKey')];
  const serverName = options.tlsName as string | undefined;
  const isTls = options.tls === true || [ca, cert, key].some((each) => each !== undefined);
  const auth = ((options.storeAuth ?? []) as readonly string[]).map((text) => {
    const at = text.indexOf(':');
    if (at < 1)
      throw new CommandError(
        'usage',
        '--store-auth: scheme:auth is wanted, as digest:user:password',
      );
    return { scheme: text.slice(0, at), auth: text.slice(at + 1) };
  });
  const saslUser = options.saslUser as string | undefined;
  return {
    servers,
    ...(options.readOnly === true && { readOnly: true }),
    ...(auth.length > 0 && { auth }),
    ...(isTls && {
      tls: {
        ...(ca && { ca }),
        ...(cert && { cert }),
        ...(key && { key }),
        ...(serverName && { serverName }),
      },
    }),
    ...(saslUser && { saslUser }),
  };
}

async function use(
  { environment, output }: Context,
  [wanted = '']: readonly string[],
): Promise<number> {
  const before = await readContexts(environment);
  const name = wanted === '-' ? before.previous : wanted;
  if (name === null) throw new CommandError('usage', 'there is none before it');
  const saved = found(before, name);
  if (name !== before.selected) {
    await writeContexts(environment, { ...before, selected: name, previous: before.selected });
  }
  if (output.isJson) output.record({ name, ...shown(saved), selected: true });
  else output.tell(`context ${name}: ${saved.servers}${saved.readOnly ? ', read-only' : ''}`);
  return exitCodes.ok;
}

async function list({ environment, output }: Context): Promise<number> {
  const { contexts, selected } = await readContexts(environment);
  const names = Object.keys(contexts).sort();
  if (output.isJson) {
    for (const name of names) {
      output.record({ name, ...shown(contexts[name]!), selected: name === selected });
    }
    return exitCodes.ok;
  }
  if (names.length === 0) {
    output.tell('no contexts; drover context add NAME host:2181 makes one');
    return exitCodes.ok;
  }
  const columns = new Columns(output, '', 'NAME', 'SERVERS', 'MODE', 'AUTH');
  for (const name of names) {
    const { servers, readOnly, auth, saslUser, tls } = contexts[name]!;
    const schemes = [
      ...(auth ?? []).map(({ scheme }) => scheme),
      ...(saslUser ? ['sasl'] : []),
      ...(tls ? ['tls'] : []),
    ];
    const mode = readOnly ? 'read-only' : '-';
    columns.row(
      name === selected ? '*' : '',
      escaped(name),
      escaped(servers),
      mode,
      escaped(schemes.join(',') || '-'),
    );
  }
  columns.end();
  return exitCodes.ok;
}

async function remove(
  { environment, output }: Context,
  [name = '']: readonly string[],
): Promise<number> {
  const before = await readContexts(environment);
  found(before, name);
  const { [name]: _, ...contexts } = before.contexts;
  const keep = (one: string | null) => (one === name ? null : one);
  await writeContexts(environment, {
    ...before,
    contexts,
    selected: keep(before.selected),
    previous: keep(before.previous),
  });
  if (output.isJson) output.record({ name, removed: true });
  else output.tell(`context ${name} removed`);
  return exitCodes.ok;
}

function found({ contexts }: Contexts, name: string): Omit<SavedContext, 'name'> {
  if (Object.hasOwn(contexts, name)) return contexts[name]!;
  const known = Object.keys(contexts).sort().join(', ') || 'none';
  throw new CommandError('usage', `no context ${escaped(name)}; there is ${known}`);
}

/** What may be shown: that there is a password, never which. */
function shown({ auth, ...rest }: Omit<SavedContext, 'name'>): object {
  return { ...rest, ...(auth && { auth: auth.map(({ scheme }) => scheme) }) };
}
