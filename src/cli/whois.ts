/**
 * `drover whois SESSION|PATH`: which client owns a session, or the ephemeral node at a path.
 *
 * A server tells of its own clients alone, by the four-letter word cons, so that all servers are asked.
 * Where a server does not answer it, that is said: then the owner may be there.
 */

import { isZkError, ZkError } from '../client/index.ts';
import { Columns } from './columns.ts';
import type { Context } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { ask, type Server, serversOf } from './four-letter.ts';
import { escaped, hex } from './output.ts';
import { sessionIdOf } from './trees.ts';

interface Owner {
  readonly server: string;
  readonly client: string;
  readonly facts: Readonly<Record<string, string>>;
}

export async function whois(context: Context, [what = '']: readonly string[]): Promise<number> {
  const { output, signal } = context;
  const session = await sessionOf(context, what);
  const target = await context.target();
  const { tls } = target.client;
  const owners: Owner[] = [];
  const silent: string[] = [];
  await Promise.all(
    serversOf(target).map(async (server) => {
      const said = await ask(server, 'cons', { signal, tls }).catch(
        (error: Error) => error.message,
      );
      if (!/\[\d*\]\(/.test(said)) silent.push(`${server.name} (${reasonOf(said)})`);
      owners.push(...ownersIn(server, said, session));
    }),
  );
  if (output.isJson) {
    output.record({ session, owners, unanswered: silent });
  } else {
    output.line(`session ${hex(session)}`);
    const columns = new Columns(output, 'SERVER', 'CLIENT', 'TIMEOUT', 'LAST OP');
    for (const { server, client, facts } of owners) {
      columns.row(server, client, `${facts.to ?? '?'} ms`, facts.lop ?? '?');
    }
    if (owners.length > 0) columns.end();
    if (silent.length > 0) output.tell(`no list of clients from ${silent.join(', ')}`);
    else if (owners.length === 0) output.tell('no server has a client with this session now');
  }
  return owners.length > 0 ? exitCodes.ok : exitCodes.refused;
}

async function sessionOf(context: Context, what: string): Promise<bigint> {
  if (/^0x[0-9a-f]+$/i.test(what)) return sessionIdOf(what);
  const path = context.path(what);
  const client = await context.client();
  const stat = await client.exists(path, { signal: context.signal }).catch((error: unknown) => {
    if (isZkError(error, 'NO_AUTH')) return null;
    throw error;
  });
  if (stat === null) throw new ZkError('NO_NODE', { path });
  if (stat.ephemeralOwner > 0n) return stat.ephemeralOwner;
  throw new CommandError('refused', `${escaped(path)} is not ephemeral: no session owns it`);
}

function reasonOf(said: string): string {
  if (/not in the whitelist/.test(said)) return 'cons is not in its 4lw.commands.whitelist';
  return escaped(said.trim().split('\n', 1)[0]!.slice(0, 80)) || 'no answer';
}

/** ` /127.0.0.1:46816[1](queued=0,recved=4,sid=0x1000…,lop=PING,to=30000,…)`, a line a client. */
export function ownersIn(server: Server, text: string, session: bigint): Owner[] {
  return text.split('\n').flatMap((line) => {
    const match = /^\s*\/?(\S+?)\[\d*\]\((.*)\)\s*$/.exec(line);
    if (match === null) return [];
    const pairs = match[2]!.split(',').map((pair) => pair.split('=') as [string, string?]);
    const facts = Object.fromEntries(pairs.map(([key, value = '']) => [key, escaped(value)]));
    if (!/^0x[0-9a-f]+$/i.test(facts.sid ?? '') || BigInt(facts.sid!) !== session) return [];
    return [{ server: server.name, client: escaped(match[1]!), facts }];
  });
}
