/**
 * What `zkServer.sh` here becomes: a server, and a door before it that changes one line.
 *
 *   the suite -> 127.0.0.1:<clientPort of its zoo.cfg> -> the server, on a port of its own
 *
 * In: a zoo.cfg; GO_PEER_CLASSPATH names Apache's jars, without it the server is ours. The suite asks
 * `srvr` whether its server is up, and reads a date there as older releases wrote it (`built on
 * 04/21/2020 15:01 GMT`): Apache 3.9 writes 2020-04-21, and so do we. That date is turned around for it;
 * all else passes as it is, and a link that ends on one side ends on the other. The suite ends what it
 * started by SIGKILL, which nobody hears: the server is ended by a shell that sees its input close.
 */

import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { freePort } from '../free-port.ts';

const source = process.argv[2]!;
const config = new Map(
  readFileSync(source, 'utf8')
    .split('\n')
    .filter((line) => line.includes('='))
    .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
);
const doorPort = Number(config.get('clientPort'));
const serverPort = await freePort();
config.set('clientPort', String(serverPort));
// Apache listens everywhere unless it is told not to.
config.set('clientPortAddress', '127.0.0.1');
const target = source.replace(/\.cfg$/, '-behind.cfg');
writeFileSync(target, [...config].map(([key, value]) => `${key}=${value}\n`).join(''));

const flags = (process.env.SERVER_JVMFLAGS ?? '').split(' ').filter((flag) => flag !== '');
const classPath = process.env.GO_PEER_CLASSPATH;
const apache = [
  ...['java', '-Xmx512m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-XX:-UsePerfData'],
  ...['-Dorg.slf4j.simpleLogger.defaultLogLevel=warn', ...flags, '-cp', classPath ?? ''],
  ...['org.apache.zookeeper.server.quorum.QuorumPeerMain', target],
];
const ours = [
  ...[process.execPath, '--import', import.meta.resolve('tsx')],
  ...[fileURLToPath(new URL('../../../src/cli/main.ts', import.meta.url)), 'serve'],
  ...[...flags, target],
];
const guard = '"$@" & read -r _; kill -9 $!; wait';
spawn('sh', ['-c', guard, 'sh', ...(classPath === undefined ? ours : apache)], {
  stdio: ['pipe', 'inherit', 'inherit'],
});

createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
  const server = connect({ port: serverPort, host: '127.0.0.1', allowHalfOpen: true });
  server.setNoDelay(true);
  client.once('data', (first) => {
    server.write(first);
    client.pipe(server);
    if (first.toString('latin1', 0, 4) === 'srvr') passWithDate(server, client);
    else server.pipe(client);
  });
  client.once('end', () => server.end());
  for (const [one, other] of [
    [client, server],
    [server, client],
  ] as const) {
    one.on('error', () => other.resetAndDestroy());
    one.on('close', () => other.destroy());
  }
}).listen(doorPort, '127.0.0.1');

/** The answer is short, and ends with its link. */
function passWithDate(server: Socket, client: Socket): void {
  let answer = '';
  server.on('data', (chunk) => {
    answer += chunk.toString('latin1');
  });
  server.on('end', () => {
    client.end(answer.replace(/built on (\d+)-(\d+)-(\d+) /, 'built on $2/$3/$1 '), 'latin1');
  });
}
