/**
 * kazoo's own test suite, as it comes from PyPI, on our server or on Apache's.
 *
 * In: which server. Out: for each test whether it passed. kazoo starts its server as `java` from PATH:
 * for ours, the one in this folder stands first there. A Python environment of its own is made in
 * .peers/kazoo when it is missing. Tests wait for threads and clocks, so one that fails runs once more
 * by itself, and only what fails twice counts.
 *
 *   npx tsx test/peers/kazoo/suite.ts [ours|apache]      by hand
 */

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../free-port.ts';
import { runProgram } from '../program.ts';
import { findZooKeepers } from '../zookeeper.ts';

export type Outcome = 'passed' | 'failed' | 'skipped';

export interface Suite {
  readonly outcomes: ReadonlyMap<string, Outcome>;
  /** What pytest printed about those that failed twice. */
  readonly output: string;
}

const here = fileURLToPath(new URL('.', import.meta.url));
const home = fileURLToPath(new URL('../../../.peers/kazoo/', import.meta.url));
const python = join(home, 'bin', 'python');
const requirements = join(here, 'requirements.txt');
const marker = join(home, 'ready');

/** Undefined when it is there; else a sentence on how to get it. */
export async function prepareKazoo(): Promise<string | undefined> {
  const wanted = readFileSync(requirements, 'utf8');
  try {
    if (readFileSync(marker, 'utf8') === wanted) return undefined;
  } catch {
    // Not made yet.
  }
  const steps = [
    ['python3', '-m', 'venv', '--clear', home],
    [python, '-m', 'pip', 'install', '--quiet', '--requirement', requirements],
  ] as const;
  for (const [command, ...args] of steps) {
    const { status, output, errors } = await runProgram(command, args, {}, 5 * 60_000);
    if (status === 0) continue;
    const why = `${output}${errors}`.trim().split('\n').at(-1);
    return `kazoo's tests need python3 with venv, and the packages of test/peers/kazoo/requirements.txt: ${why}`;
  }
  writeFileSync(marker, wanted);
  return undefined;
}

/** Two at a time. The slow ones are spread over both. */
const firstShard = ['client', 'watchers', 'partitioner', 'lock', 'barrier', 'sasl'];

export async function runKazoo(server: 'ours' | 'apache', timeoutMs: number): Promise<Suite> {
  const deadlineMs = Date.now() + timeoutMs;
  const lib = join(home, 'lib', readdirSync(join(home, 'lib'))[0]!);
  const tests = join(lib, 'site-packages', 'kazoo', 'tests');
  const environment = await environmentFor(server);
  const play = async (targets: readonly string[]) => {
    const folder = mkdtempSync(join(tmpdir(), 'drover-kazoo-'));
    const report = join(folder, 'report.xml');
    const port = String(await freePort());
    const { output, errors } = await runProgram(
      python,
      [
        ...['-m', 'pytest', '-p', 'no:cacheprovider', '-q', '--tb=short', '--timeout=120'],
        ...[`--rootdir=${tests}`, `--junit-xml=${report}`, ...targets],
      ],
      { ...environment, ZOOKEEPER_PORT_OFFSET: port },
      deadlineMs - Date.now(),
      folder,
    );
    try {
      return { outcomes: outcomesOf(readFileSync(report, 'utf8')), output: output + errors };
    } catch (error) {
      throw new Error(`kazoo's suite gave no report in time: ${(output + errors).slice(-4_000)}`, {
        cause: error,
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
  const names = readdirSync(tests).filter((name) => /^test_.*\.py$/.test(name));
  const isFirst = (name: string) => firstShard.includes(name.slice('test_'.length, -'.py'.length));
  const files = (which: (name: string) => boolean) =>
    names.filter(which).map((name) => join(tests, name));
  const rounds = await Promise.all([play(files(isFirst)), play(files((name) => !isFirst(name)))]);
  const outcomes = new Map(rounds.flatMap((round) => [...round.outcomes]));
  const failed = [...outcomes].filter(([, outcome]) => outcome === 'failed').map(([name]) => name);
  if (failed.length === 0) return { outcomes, output: '' };
  const again = await play(failed.map((name) => target(tests, name)));
  for (const [name, outcome] of again.outcomes) outcomes.set(name, outcome);
  return { outcomes, output: again.output };
}

const target = (tests: string, name: string): string => {
  const [file, ...rest] = name.split('.');
  return [join(tests, `${file}.py`), ...rest].join('::');
};

async function environmentFor(server: 'ours' | 'apache'): Promise<NodeJS.ProcessEnv> {
  const { found } = await findZooKeepers();
  const apache = found.find(({ name }) => name.startsWith('apache'));
  if (server === 'apache' && apache === undefined) throw new Error('no Apache ZooKeeper is here');
  return {
    CI: undefined, // with it kazoo leaves some of its tests out
    ...(server === 'ours' ? { PATH: `${here}:${process.env.PATH}` } : {}),
    KAZOO_PYTHON: python,
    ZOOKEEPER_VERSION: '3.9.5',
    ZOOKEEPER_CLASSPATH: server === 'ours' ? 'none' : apache!.classPath,
    ZOOKEEPER_CLUSTER_SIZE: '1',
    ZOOKEEPER_LOCAL_SESSION_RO: 'false',
  };
}

/** Each test by file, class and name, as in `test_lock.KazooLockTests.test_lock`. */
function outcomesOf(report: string): Map<string, Outcome> {
  const outcomes = new Map<string, Outcome>();
  for (const [, attributes, body] of report.matchAll(
    /<testcase ([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g,
  )) {
    const place = /classname="([^"]*)"/.exec(attributes!)![1]!;
    const name = `${place.split('.').slice(-2).join('.')}.${/ ?name="([^"]*)"/.exec(attributes!.replace(/classname="[^"]*"/, ''))![1]}`;
    const isBad = /<(failure|error)\b/.test(body ?? '');
    const outcome = isBad ? 'failed' : /<skipped\b/.test(body ?? '') ? 'skipped' : 'passed';
    if (outcomes.get(name) !== 'failed') outcomes.set(name, outcome);
  }
  return outcomes;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const missing = await prepareKazoo();
  if (missing !== undefined) throw new Error(missing);
  const startMs = Date.now();
  const { outcomes } = await runKazoo(
    process.argv[2] === 'apache' ? 'apache' : 'ours',
    20 * 60_000,
  );
  const of = (wanted: Outcome) => [...outcomes].filter(([, outcome]) => outcome === wanted);
  for (const [name] of of('failed')) console.log(`failed: ${name}`);
  for (const [name] of of('skipped')) console.log(`skipped: ${name}`);
  const seconds = Math.round((Date.now() - startMs) / 1_000);
  console.log(
    `${of('passed').length} passed, ${of('failed').length} failed, ${of('skipped').length} skipped, ${seconds} s`,
  );
}
