/**
 * The test suite of github.com/go-zookeeper/zk, as it comes from Go's module proxy, on our server or on
 * Apache's; and a story told by that client.
 *
 * In: which server. Out: for each test whether it passed. The suite starts its servers as `zkServer.sh`
 * from ZOOKEEPER_BIN_PATH, which is the one in this folder. The module is fetched into .peers/go, with
 * what is built from it. Tests wait for clocks, so one that fails runs once more by itself, and only what
 * fails twice counts.
 *
 *   npx tsx test/peers/go/suite.ts [ours|apache]      by hand
 */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runProgram } from '../program.ts';
import { findZooKeepers, type ZooKeeperPeer } from '../zookeeper.ts';
import { needsEnsemble } from './known.ts';

export type Outcome = 'passed' | 'failed' | 'skipped';

export interface Suite {
  readonly outcomes: ReadonlyMap<string, Outcome>;
  /** What those printed that failed twice. */
  readonly output: string;
}

const here = fileURLToPath(new URL('.', import.meta.url));
const home = fileURLToPath(new URL('../../../.peers/go/', import.meta.url));
const suite = join(home, 'zk.test');
const story = join(home, 'story');
const marker = join(home, 'ready');

/** Undefined when it is there; else a sentence on how to get it. */
export async function prepareGo(): Promise<string | undefined> {
  const wanted = ['go.mod', 'go.sum', 'story.go']
    .map((name) => readFileSync(join(here, name), 'utf8'))
    .join('');
  try {
    if (readFileSync(marker, 'utf8') === wanted) return undefined;
  } catch {
    // Not made yet.
  }
  mkdirSync(home, { recursive: true });
  // The module's folder can be deleted like any other, and no other Go is fetched in place of this one.
  const environment = {
    ...{ GOMODCACHE: join(home, 'mod'), GOFLAGS: '-modcacherw -mod=readonly -buildvcs=false' },
    ...{ GOTOOLCHAIN: 'local', GOWORK: 'off' },
  };
  const steps = [
    ['test', '-vet=off', '-c', '-o', suite, 'github.com/go-zookeeper/zk'],
    ['build', '-o', story, '.'],
  ];
  for (const args of steps) {
    const { status, errors } = await runProgram('go', args, environment, 5 * 60_000, here);
    if (status === 0) continue;
    const why = errors.trim().split('\n').at(-1);
    return `the Go client's tests need go, 1.20 or newer, and the module of test/peers/go/go.mod: ${why}`;
  }
  writeFileSync(marker, wanted);
  return undefined;
}

/** The newest there is: Debian's is older. */
export async function newestApache(): Promise<ZooKeeperPeer | undefined> {
  const { found } = await findZooKeepers();
  return found.find(({ name }) => name.startsWith('apache')) ?? found[0];
}

export async function runGo(server: 'ours' | ZooKeeperPeer, timeoutMs: number): Promise<Suite> {
  const deadlineMs = Date.now() + timeoutMs;
  const environment = {
    ZOOKEEPER_BIN_PATH: here,
    ...(server === 'ours' ? {} : { GO_PEER_CLASSPATH: server.classPath }),
  };
  const play = async (...args: string[]) => {
    const folder = mkdtempSync(join(tmpdir(), 'drover-go-'));
    try {
      const all = { ...environment, TMPDIR: folder };
      return await runProgram(suite, args, all, deadlineMs - Date.now(), folder);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
  const leftOut = `-test.skip=^(${Object.keys(needsEnsemble).join('|')})$`;
  const { output: listed } = await play('-test.list=.');
  const names = listed.split('\n').filter((line) => line.startsWith('Test'));
  const { output: first } = await play('-test.v', '-test.timeout=5m', leftOut);
  const outcomes = outcomesOf(first);
  // One that panics takes those behind it with it: they have no outcome, and get their turn now.
  const again = names.filter(
    (name) => !(name in needsEnsemble) && (outcomes.get(name) ?? 'failed') === 'failed',
  );
  let output = '';
  for (const name of again) {
    const alone = await play('-test.v', '-test.timeout=2m', `-test.run=^${name}$`);
    outcomes.set(name, outcomesOf(alone.output).get(name) ?? 'failed');
    if (outcomes.get(name) !== 'failed') continue;
    output += alone.output.slice(-4_000) + alone.errors.slice(-4_000);
  }
  return { outcomes, output };
}

/** One line for each step, the same from every server. */
export async function tellStory(address: string): Promise<string[]> {
  const { status, output, errors } = await runProgram(story, [address], {}, 60_000);
  return [...`${output}${errors}`.trimEnd().split('\n'), `ended with ${status}`];
}

/** Of tests, not of their parts: a part that fails fails its test. */
function outcomesOf(output: string): Map<string, Outcome> {
  const words = { PASS: 'passed', FAIL: 'failed', SKIP: 'skipped' } as const;
  return new Map(
    [...output.matchAll(/^--- (PASS|FAIL|SKIP): (\S+)/gm)].map(([, word, name]) => [
      name!,
      words[word as keyof typeof words],
    ]),
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const missing = await prepareGo();
  if (missing !== undefined) throw new Error(missing);
  const startMs = Date.now();
  const server = process.argv[2] === 'apache' ? await newestApache() : 'ours';
  if (server === undefined) throw new Error('no Apache ZooKeeper is here');
  const { outcomes, output } = await runGo(server, 10 * 60_000);
  for (const [name, outcome] of outcomes) console.log(`${outcome}: ${name}`);
  console.log(output);
  console.log(`${outcomes.size} tests, ${Math.round((Date.now() - startMs) / 1_000)} s`);
}
