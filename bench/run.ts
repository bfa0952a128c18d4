/**
 * The benches: ours and its peers side by side, in one run, as ratios.
 *
 *   npm run bench -- client
 *   npm run bench -- server
 *   npm run bench -- cli
 *   npm run bench -- locks
 *   npm run bench -- align
 */

import { parseArgs } from 'node:util';
import { benchAlign } from './align.ts';
import { benchCli } from './cli.ts';
import { benchClient } from './client.ts';
import { benchLocks } from './locks.ts';
import type { BenchOptions } from './options.ts';
import { benchServer } from './server.ts';

const benches: Readonly<Record<string, (options: BenchOptions) => Promise<unknown>>> = {
  client: benchClient,
  server: benchServer,
  cli: benchCli,
  locks: benchLocks,
  align: benchAlign,
};

const usage = `usage: npm run bench -- client|server|cli|locks|align [options]

  client   drover, npm zookeeper and node-zookeeper-client, on a stand-in server that costs
           next to nothing and on Apache ZooKeeper
  server   drover serve, as built, and Apache ZooKeeper with each of its two network layers:
           rows 'get 100 50x10' and the like, then 'ready', 'idle', 'million', 'sessions', 'fan-out'
  cli      the time from 'drover ls /' to its output, as built, and from zkCli's
  locks    acquire and release by 1 and by 50 contenders: ours on drover serve and on Apache
           ZooKeeper, Curator on the same, redlock on Redis, etcd3 on etcd
  align    reading in step beside reading freely: rows 'even', 'skewed', 'requests'

  --seconds N   how long each try takes              (1)
  --tries N     tries of each row; the middle counts (3)
  --only WORDS  only rows named so, as 'get 100 x1', or several, as 'set 50x10, sessions'
  --dist DIR    another build of drover than this one's
  --serve CMD   another way to start our server, as 'drover serve --port {port} --data {dir}'
  --peer NAME   which Apache ZooKeeper, as 'debian-3.8.0' (the newest)
  --nodes N     how many make the large tree of the rows 'million' (1000000)
  --json        the figures as JSON, each try with them
`;

/** Undefined for what is not understood. */
function read(): { name: string; options: BenchOptions } | undefined {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      seconds: { type: 'string', default: '1' },
      tries: { type: 'string', default: '3' },
      only: { type: 'string', default: '' },
      dist: { type: 'string' },
      serve: { type: 'string' },
      peer: { type: 'string' },
      nodes: { type: 'string', default: '1000000' },
      json: { type: 'boolean', default: false },
    },
  });
  const [name = ''] = positionals;
  const seconds = Number(values.seconds);
  const tries = Number(values.tries);
  const nodes = Number(values.nodes);
  if (!Object.hasOwn(benches, name) || positionals.length > 1) return undefined;
  if (!(seconds > 0 && seconds <= 600) || !(Number.isInteger(tries) && tries > 0)) return undefined;
  if (!(Number.isInteger(nodes) && nodes > 0 && nodes <= 10_000_000)) return undefined;
  const only = values.only
    .split(',')
    .map((words) => words.split(/\s+/).filter((word) => word !== ''))
    .filter((words) => words.length > 0);
  const { dist, serve, peer, json } = values;
  return { name, options: { seconds, tries, json, only, dist, serve, peer, nodes } };
}

let asked: ReturnType<typeof read>;
try {
  asked = read();
} catch (error) {
  process.stderr.write(`bench: ${(error as Error).message}\n`);
}
if (asked === undefined) {
  process.stderr.write(usage);
  process.exit(2);
}
const result = await benches[asked.name]!(asked.options);
process.stdout.write(asked.options.json ? `${JSON.stringify(result, null, 2)}\n` : '');
process.exit(0);
