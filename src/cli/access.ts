/** Who may do what: getAcl, setAcl, addauth, whoami, with zkCli's flags and output. */

import { isZkError } from '../client/index.ts';
import { permsText } from '../protocol/index.ts';
import { parseAcl } from './acl-text.ts';
import type { Context, OptionValues } from './command.ts';
import { printStat, statJson } from './data.ts';
import { exitCodes } from './exit-codes.ts';
import { versionOf } from './nodes.ts';
import { aclJson, counted, escaped } from './output.ts';

type Args = readonly string[];

export async function getAcl(
  context: Context,
  [given]: Args,
  options: OptionValues,
): Promise<number> {
  const { output, signal, surface } = context;
  const path = context.path(given);
  const client = await context.client();
  const { acl, stat } = await client.getAcl(path, { signal });
  if (output.isJson) {
    output.record({ path, acl: aclJson(acl), aversion: stat.aversion });
    return exitCodes.ok;
  }
  for (const { id, perms } of acl) {
    const [scheme, name] = [escaped(id.scheme), escaped(id.id)];
    // zkCli prints Java's view of the record; by itself it is printed as setAcl takes it.
    if (surface === 'argv') output.line(`${scheme}:${name}:${permsText(perms)}`);
    else output.line(`'${scheme},'${name}\n: ${permsText(perms)}`);
  }
  if (options.s === true) printStat(output, stat);
  return exitCodes.ok;
}

export async function setAcl(
  context: Context,
  [given, text = '']: Args,
  options: OptionValues,
): Promise<number> {
  const { output, signal } = context;
  const path = context.path(given);
  const acl = parseAcl(text);
  const version = versionOf(options);
  const client = await context.client();
  if (options.R !== true) {
    const stat = await client.setAcl(path, acl, { version, signal });
    if (output.isJson) output.record({ path, stat: statJson(stat) });
    else if (options.s === true) printStat(output, stat);
    return exitCodes.ok;
  }
  const { listSubtree } = await import('./subtree.ts');
  if (!(await confirmMany(context, path, options))) return exitCodes.declined;
  let changed = 0;
  let failed = 0;
  for await (const each of listSubtree(client, path, { signal })) {
    try {
      await client.setAcl(each, acl, { version, signal });
      changed += 1;
    } catch (error) {
      if (!isZkError(error) || error.outcomeUnknown) throw error;
      if (error.code === 'NO_NODE') continue; // gone since it was listed
      failed += 1;
      output.tell(error.message);
    }
    output.status(() => `${changed} nodes`);
  }
  if (output.isJson) output.record({ path, changed, failed });
  return failed > 0 ? exitCodes.refused : exitCodes.ok;
}

async function confirmMany(
  context: Context,
  path: string,
  options: OptionValues,
): Promise<boolean> {
  const client = await context.client();
  const below = await client.countDescendants(path, { signal: context.signal });
  if (below === 0) return true;
  const question = `set the ACL of ${escaped(path)} and ${counted(below, 'node')} below it?`;
  return context.confirm(question, options);
}

export async function addAuth(context: Context, [scheme = '', auth = '']: Args): Promise<number> {
  const client = await context.client();
  await client.addAuth(scheme, auth);
  if (context.output.isJson) context.output.record({ scheme });
  return exitCodes.ok;
}

export async function whoAmI(context: Context): Promise<number> {
  const { output, signal } = context;
  const client = await context.client();
  const all = await client.whoAmI({ signal });
  if (output.isJson) {
    output.record({
      sessionId: client.sessionId,
      server: client.server,
      ids: all.map(({ authScheme: scheme, user }) => ({ scheme, user })),
    });
    return exitCodes.ok;
  }
  output.line('Auth scheme: User');
  for (const { authScheme, user } of all) output.line(escaped(`${authScheme}: ${user}`));
  return exitCodes.ok;
}
