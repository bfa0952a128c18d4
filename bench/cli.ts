/**
 * From `drover ls /` to its output, beside Apache's zkCli with the same command on the same server.
 *
 * Both are what a person types: a process that starts, connects, asks, prints and ends. The first line
 * of the answer is what is waited for ("output"), and the end of the process is measured too. They take
 * turns, so that what else the machine does meets both; the middle of the tries counts. `node` beside them
 * is a program that prints a line and does nothing else: nothing that Node runs can be faster.
 *
 * zkCli is run by Apache's own zkCli.sh where ZOOKEEPER_HOME has one; else by java alone, with its log
 * off, which leaves out the shell and the log that zkCli.sh comes with, and so is in zkCli's favour.
 * NODE_EXTRA_CA_CERTS is taken away where it is set: Node 20 reads all those certificates at every start,
 * which takes longer than all the rest, and has nothing to do with us.
 */

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startApache } from '../test/peers/zookeeper.ts';
import { firstApache } from './apache.ts';
import { median, short, tableText } from './figures.ts';
import { machineText } from './machine.ts';
import { type BenchOptions, log } from './options.ts';

/** zkCli's time as a multiple of ours. */
const goal = 5;
const runTimeoutMs = 60_000;

interface Timed {
  readonly outputMs: number;
  readonly endMs: number;
}

export async function benchCli(options: BenchOptions): Promise<unknown> {
  const dist = options.dist ?? fileURLToPath(new URL('../dist', import.meta.url));
  const main = `${dist}/bin/drover.js`;
  if (!existsSync(main)) throw new Error(`there is no ${main}; run npm run build`);
  const peer = await firstApache(options);
  if (peer === undefined) throw new Error('there is no zkCli to compare with');
  await using server = await startApache(peer);
  const script = process.env.ZOOKEEPER_HOME && join(process.env.ZOOKEEPER_HOME, 'bin', 'zkCli.sh');
  const asked = ['-server', server.address, 'ls', '/'];
  const commands = {
    drover: [process.execPath, main, '--server', server.address, 'ls', '/'],
    node: [process.execPath, '-e', 'process.stdout.write("zookeeper\\n")'],
    zkCli:
      script && existsSync(script)
        ? [script, ...asked]
        : [
            'java',
            '-Xmx256m', // as zkCli.sh has it
            '-Dorg.slf4j.simpleLogger.defaultLogLevel=off',
            '-cp',
            peer.classPath,
            'org.apache.zookeeper.ZooKeeperMain',
            ...asked,
          ],
  } as const;
  const times: Record<keyof typeof commands, Timed[]> = { drover: [], node: [], zkCli: [] };
  const tries = Math.max(3, options.tries);
  for (let i = 0; i < tries + 1; i++) {
    for (const name of ['drover', 'node', 'zkCli'] as const) {
      log(`${name}, try ${i} of ${tries}`);
      const timed = await time(commands[name]);
      if (i > 0) times[name].push(timed); // the first brings the files into memory
    }
  }
  const figures = {
    drover: figureOf(times.drover),
    node: figureOf(times.node),
    zkCli: figureOf(times.zkCli),
  };
  const ratio = figures.zkCli.outputMs / figures.drover.outputMs;
  if (!options.json) {
    const row = (what: string, pick: (one: Timed) => number) => {
      const [ours, theirs] = [pick(figures.drover), pick(figures.zkCli)];
      return [
        what,
        short(ours),
        short(pick(figures.node)),
        short(theirs),
        `${short(theirs / ours)}x`,
      ];
    };
    const rows = [
      ['ls /', 'drover', 'bare node', `zkCli ${peer.version}`, 'faster'],
      row('output ms', ({ outputMs }) => outputMs),
      row('end ms', ({ endMs }) => endMs),
    ];
    process.stdout.write(`${machineText()}\n\n${tableText(rows)}\n\n`);
    process.stdout.write(`goal: ${goal}x to the output, ${ratio >= goal ? 'reached' : 'missed'}\n`);
  }
  return { peer: peer.name, ratio, goal, ...figures };
}

function figureOf(tries: readonly Timed[]): Timed & { readonly tries: readonly Timed[] } {
  return {
    outputMs: median(tries.map(({ outputMs }) => outputMs)),
    endMs: median(tries.map(({ endMs }) => endMs)),
    tries,
  };
}

function time([command, ...args]: readonly string[]): Promise<Timed> {
  return new Promise((resolve, reject) => {
    const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
    const startMs = performance.now();
    const child = spawn(command!, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
    const timer = setTimeout(() => child.kill('SIGKILL'), runTimeoutMs);
    let outputMs: number | undefined;
    let said = '';
    const hear = (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-4_000);
      // zkCli may print the event of its session into the middle of the list.
      if (/^\[?zookeeper\]?$/m.test(said)) outputMs ??= performance.now() - startMs;
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-4_000);
    });
    child.on('error', reject);
    child.on('close', (code) => {
      clearTimeout(timer);
      const endMs = performance.now() - startMs;
      if (code === 0 && outputMs !== undefined) resolve({ outputMs, endMs });
      else reject(new Error(`${command} ended with ${code} and said ${said}`));
    });
  });
}
