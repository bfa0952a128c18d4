/**
 * The same script through Apache's zkCli and through ours, each on a fresh server: line by line they have
 * to say the same about the tree, and leave the same tree behind.
 *
 * What may differ is named here: how an error is worded (both are read as its code), times and zxids, and
 * when the event of a watch is printed. Both keep their order, so they are compared line by line.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, test, vi } from 'vitest';
import { commands } from '../../src/cli/commands.ts';
import { Shell } from '../../src/cli/shell.ts';
import { visitSubtree } from '../../src/cli/subtree.ts';
import { type Client, connect } from '../../src/client/index.ts';
import { permsText } from '../../src/protocol/index.ts';
import { startTestServer } from '../../src/testing/index.ts';
import { Caught } from '../cli-run.ts';
import { findZooKeepers, startApache, type ZooKeeperPeer } from './zookeeper.ts';

vi.setConfig({ testTimeout: 180_000 });

const { found } = await findZooKeepers();

/** Printed behind every line, so that it is known who said what. */
const mark = '=-=-=-=';

const lines = `
ls /
create /a one
create /a again
create /a/b "two words"
create /a/b/c 'single "quoted"'
create /a/d it's
create /a/e ""
create /none/x y
get /a
get /a/b
get /a/b/c
get /a/d
get /a/e
get -b /a/b
get -x /a/b
get /none
get -s /a
stat /a
stat /none
ls /a
ls -s /a
ls -R /a
ls -R /
ls /none
ls /a watch
get /a watch
set /a three
set -v 0 /a four
set -v 1 /a five
set -s /a six
set -b /a/d aGVsbG8=
get /a/d
set /none x
create -s /seq- x
create -s /a/ x
create -e /eph e
create -e -s /eph- e
create /eph/child x
create -c /container
create -c -s /bad
create -c -e /bad
getEphemerals
getEphemerals /eph
getAllChildrenNumber /a
getAllChildrenNumber /
getAcl /a
setAcl /a world:anyone:cdra
getAcl /a
set /a refused
setAcl -s /a world:anyone:cdrwa
setAcl -v 9 /a world:anyone:r
setAcl -R /a/b ip:127.0.0.1:cdrwa,world:anyone:r
getAcl /a/b/c
getAcl -s /a/b
addauth digest ann:secret
create /mine x auth::cdrwa
getAcl /mine
create /digest x digest:ann:Jr9V9DaVBSQqzDTT0vhLYTNg8Ok=:cdrwa
setquota -n 10 /a
setquota -b 100 /a
setquota -N 20 /a
listquota /a
setquota -n 5 /a/b
delquota -n /a
listquota /a
delquota /a
delquota /a
listquota /a
delete /a
delete -v 7 /a/e
delete /a/e
delete /a/e
sync /a
sync /
printwatches
printwatches off
printwatches
printwatches on
create /tab	tabs
get /tab
create "/with space" x
ls /
deleteall /a
deleteall /a
ls -R /
create /utf8-ünï ünï
get /utf8-ünï
get "/utf8-ünï"
create /unclosed "never
get /unclosed
redo 0
redo 9999
no-such-command
close
ls /
connect
ls /
`
  .split('\n')
  .filter((line) => line !== '');

/** How zkCli words what our errors name by a code. */
const wordings: readonly (readonly [RegExp, string])[] = [
  [/Node does not exist: (\S+)|NO_NODE: .*/, 'NO_NODE'],
  [/Node already exists: .*|NODE_EXISTS: .*/, 'NODE_EXISTS'],
  [/Node not empty: .*|NOT_EMPTY: .*/, 'NOT_EMPTY'],
  [/version No is not valid : .*|BAD_VERSION: .*/, 'BAD_VERSION'],
  [/Insufficient permission : .*|NO_AUTH: .*/, 'NO_AUTH'],
  [/Ephemerals cannot have children: .*|NO_CHILDREN_FOR_EPHEMERALS: .*/, 'NO_CHILDREN'],
  [/Command index out of range.*/, 'OUT_OF_RANGE'],
  [/Not connected.*/, 'NOT_CONNECTED'],
];

/** Words of comfort, usage, and what stands on standard error beside an answer. */
const chatter = [
  /^ZooKeeper -server host:port.*$/,
  /^\t\w+.*$/,
  /deprecated/,
  /^absolute path is/,
  /^\d+ nodes were deleted$/,
  /^connected to /,
  /^log4j|^SLF4J|^\d{4}-\d\d-\d\d|^\[main|^\[myid|^WARN|^INFO/,
  /^Connecting to |^Welcome to ZooKeeper|^JLine support/,
  // Its other thread tells of events, and another line may come between the two of one.
  /^WATCHER::$|^WatchedEvent /,
  /^$/,
];

function normalised(text: string): string[] {
  const events = text.replace(/\n?WATCHER::\n\nWatchedEvent [^\n]*\n?/g, '');
  return events
    .split('\n')
    .map((line) => line.replace(/^drover: /, ''))
    .filter((line) => !chatter.some((pattern) => pattern.test(line)))
    .map((line) => {
      const wording = wordings.find(([pattern]) => pattern.test(line));
      if (wording !== undefined) return wording[1];
      if (/^Command not found/.test(line)) return 'NO_COMMAND';
      return line
        .replace(/^(cZxid|mZxid|pZxid|ephemeralOwner) = 0x(?!0$).*/, '$1 = 0x…')
        .replace(/^(ctime|mtime) = \w{3} \w{3} \d\d \d\d:\d\d:\d\d \S+ \d{4}$/, '$1 = …');
    });
}

/** Flags that came with 3.9. */
const isNew = (line: string) => /^(get -[bx]|set -b) /.test(line);

function scriptFor({ version }: ZooKeeperPeer): string[] {
  return version.startsWith('3.8.') ? lines.filter((line) => !isNew(line)) : lines;
}

interface Told {
  readonly byLine: ReadonlyMap<string, string[]>;
  readonly events: string[];
}

function told(script: readonly string[], text: string): Told {
  const parts = text.split(`${mark}\n`);
  const byLine = new Map<string, string[]>();
  for (const [i, line] of script.entries()) {
    byLine.set(`${i} ${line}`, normalised(parts[i] ?? 'nothing was said'));
  }
  const events = [...text.matchAll(/type:(Node\w+) path:(\S+)/g)].map(([, type, path]) => {
    return `${type} ${path}`;
  });
  return { byLine, events: events.sort() };
}

async function prepared(address: string): Promise<void> {
  const client = await connect(address);
  await client.create('/mark', mark);
  await client.close();
}

async function throughZkCli(peer: ZooKeeperPeer, address: string): Promise<Told> {
  const script = scriptFor(peer);
  const child = spawn(
    'sh',
    ['-c', 'exec java -Dorg.slf4j.simpleLogger.defaultLogLevel=off "$@" 2>&1', 'sh'].concat([
      ...['-Dfile.encoding=UTF-8', '-Dstdout.encoding=UTF-8', '-Dstderr.encoding=UTF-8'],
      ...['-cp', peer.classPath, 'org.apache.zookeeper.ZooKeeperMain'],
      ...['-server', address, '-waitforconnection'],
    ]),
  );
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    out += chunk;
  });
  child.stdin.end(`${script.map((line) => `${line}\nget /mark\n`).join('')}quit\n`);
  await once(child, 'close');
  return told(script, out.slice(out.indexOf('JLine support')));
}

async function throughOurs(script: readonly string[], address: string): Promise<Told> {
  const both = new Caught(false);
  const environment = { DROVER_SERVER: address };
  const streams = { stdout: both, stderr: both, environment };
  const shell = new Shell({ commands, kind: 'script', environment, streams, defaults: {} });
  for (const line of script) {
    await shell.execute(line);
    await shell.execute('get /mark');
  }
  await shell.close();
  return told(script, both.take().toString('utf8'));
}

/** Everything that both scripts left, but what every server numbers for itself. */
async function treeOf(address: string): Promise<string[]> {
  const client: Client = await connect(address, {
    auth: [{ scheme: 'digest', auth: 'ann:secret' }],
  });
  const nodes: string[] = [];
  const signal = new AbortController().signal;
  const onRefused = (path: string) => void nodes.push(`${path} is hidden`);
  for await (const { path, stat } of visitSubtree(client, '/', { signal, onRefused })) {
    if (path === '/zookeeper' || path.startsWith('/zookeeper/')) continue;
    const { data } = await client.get(path);
    const { acl } = await client.getAcl(path);
    const who = acl.map(({ id, perms }) => `${id.scheme}:${id.id}:${permsText(perms)}`);
    nodes.push(`${path} ${data?.toString('hex')} ${stat.version} ${stat.aversion} ${who}`);
  }
  await client.close();
  return nodes.sort();
}

describe.skipIf(found.length === 0)('zkCli and drover shell', () => {
  test.each(found)('say the same and leave the same tree, line by line: $name', async (peer) => {
    await using first = await startApache(peer);
    await using second = await startApache(peer);
    await using ours = await startTestServer({ extendedTypesEnabled: true });
    const addresses = [first.address, second.address, `127.0.0.1:${ours.port}`];
    for (const address of addresses) await prepared(address);

    const script = scriptFor(peer);
    const theirs = await throughZkCli(peer, addresses[0]!);
    const shell = await throughOurs(script, addresses[1]!);
    const onOurs = await throughOurs(script, addresses[2]!);

    expect([...theirs.byLine.values()].flat()).toContain('[b, d, e]'); // it was heard at all
    expect(Object.fromEntries(shell.byLine)).toEqual(Object.fromEntries(theirs.byLine));
    expect(Object.fromEntries(onOurs.byLine)).toEqual(Object.fromEntries(theirs.byLine));
    expect(shell.events).toEqual(theirs.events);
    expect(await treeOf(addresses[1]!)).toEqual(await treeOf(addresses[0]!));
    expect(await treeOf(addresses[2]!)).toEqual(await treeOf(addresses[0]!));
  });
});
