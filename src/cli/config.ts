/** The ensemble's own configuration, as zkCli's `config` shows it and `reconfig` changes it. */

import { readPlainFile } from '../support/index.ts';
import type { Context, OptionValues } from './command.ts';
import { printStat, statJson } from './data.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { escaped } from './output.ts';
import { eventWaiter } from './watch-events.ts';

/** Each server's client address and the version, as zkCli's `config -c` prints them. */
export function clientConfig(text: string): string {
  const lines = text.split('\n');
  const version = /^version=(\S+)$/m.exec(text)?.[1] ?? '';
  const clients = lines.flatMap((line) => {
    const [, host, client] = /^server\.\d+=([^:\s]+|\[[^\]]+\])[^;]*;(.+)$/.exec(line.trim()) ?? [];
    if (client === undefined) return [];
    // A port alone, or any address, is reached at the host that the servers use.
    const port = client.slice(client.lastIndexOf(':') + 1);
    const address = client.includes(':') ? client.slice(0, client.lastIndexOf(':')) : '';
    return [`${address === '' || address === '0.0.0.0' ? host : address}:${port}`];
  });
  return `${version} ${clients.join(',')}`;
}

export async function showConfig(context: Context, options: OptionValues): Promise<number> {
  const { output, signal } = context;
  const waiter = options.w === true ? eventWaiter(context) : undefined;
  const client = await context.client();
  const { data, stat } = await client.getConfig({
    signal,
    ...(waiter && { watch: waiter.listener }),
  });
  const text = data?.toString('utf8') ?? 'null';
  if (output.isJson) {
    output.record({ config: text.split('\n'), clients: clientConfig(text), stat: statJson(stat) });
  } else {
    for (const line of (options.c === true ? clientConfig(text) : text).split('\n')) {
      output.line(escaped(line));
    }
    if (options.s === true) printStat(output, stat);
  }
  return waiter ? waiter.wait() : exitCodes.ok;
}

export async function reconfig(
  context: Context,
  _: readonly string[],
  options: OptionValues,
): Promise<number> {
  const { output, signal } = context;
  const text = (name: string) => options[name] as string | undefined;
  const [joining, leaving, file] = [text('add'), text('remove'), text('file')];
  const given = text('members');
  if ((file ?? given) !== undefined && (joining ?? leaving) !== undefined) {
    throw new CommandError(
      'usage',
      "Can't use -file or -members together with -add or -remove (mixing incremental and non-incremental modes is not allowed)",
    );
  }
  if (file !== undefined && given !== undefined) {
    throw new CommandError(
      'usage',
      "Can't use -file and -members together (conflicting non-incremental modes)",
    );
  }
  if ((file ?? given ?? joining ?? leaving) === undefined) {
    throw new CommandError('usage', 'one of -add, -remove, -members and -file is wanted');
  }
  const members = file === undefined ? given : (await membersOf(file)).join(',');
  const list = (value: string | undefined) => value?.toLowerCase().split(',');
  const client = await context.client();
  const { data, stat } = await client.reconfig({
    signal,
    ...(joining !== undefined && { joining: list(joining)! }),
    ...(leaving !== undefined && { leaving: list(leaving)! }),
    ...(members !== undefined && { members: list(members)! }),
    ...(text('v') !== undefined && { fromConfig: versionOf(text('v')!) }),
  });
  const config = data?.toString('utf8') ?? '';
  if (output.isJson) {
    output.record({ config: config.split('\n'), stat: statJson(stat) });
    return exitCodes.ok;
  }
  output.line('Committed new configuration:');
  for (const line of config.split('\n')) output.line(escaped(line));
  if (options.s === true) printStat(output, stat);
  return exitCodes.ok;
}

function versionOf(text: string): bigint {
  if (/^[0-9a-f]{1,16}$/i.test(text)) return BigInt(`0x${text}`);
  throw new CommandError('usage', '-v must be followed by a long (configuration version), in hex');
}

/** The `server.N=…` lines of a dynamic configuration file. */
async function membersOf(file: string): Promise<string[]> {
  let text: string;
  try {
    text = (await readPlainFile(file)).toString('utf8');
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code ?? 'unknown error';
    throw new CommandError('usage', `${escaped(file)} can't be read (${reason})`, { cause });
  }
  const lines = text.split('\n').map((line) => line.replaceAll(/\s/g, ''));
  const servers = lines.filter((line) => /^server\.\d+=/.test(line));
  if (servers.length > 0) return servers;
  throw new CommandError(
    'usage',
    `${escaped(file)} has no line such as server.1=host:2888:3888;2181`,
  );
}
