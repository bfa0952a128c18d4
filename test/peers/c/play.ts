/**
 * Plays the C programs on a server. In: a server's address. Out: the lines that they printed, without
 * what every run has anew (ids, zxids, times).
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Link } from '../../../src/testing/index.ts';

/** A program, gone with its scope at the latest. */
function start(program: string, args: readonly string[]) {
  const child = spawn(program, args);
  const ended = once(child, 'close');
  const kill = () => void child.kill('SIGKILL');
  process.on('exit', kill);
  // One that ends before its input does is told of by what it printed.
  child.stdin.on('error', () => {});
  return {
    child,
    ended,
    async [Symbol.asyncDispose]() {
      kill();
      await ended;
      process.off('exit', kill);
    },
  };
}

/** What the story asks to be done to its link. */
const favours: Readonly<Record<string, (link: Link) => void>> = {
  cut: (link) => link.cut(),
  hold: (link) => link.hold(),
  admit: (link) => link.admit(),
  pause: (link) => link.pause('toClient'),
  resume: (link) => link.resume('toClient'),
};

export async function playStory(story: string, address: string): Promise<string[]> {
  const [host, port] = address.split(':') as [string, string];
  await using link = await Link.to({ host, port: Number(port) });
  await using program = start(story, [link.address, address]);
  const lines: string[] = [];
  for await (const line of createInterface(program.child.stdout)) {
    lines.push(line.trimEnd());
    const [, favour] = /^ask (.+)$/.exec(line) ?? [];
    if (favour === undefined) continue;
    favours[favour]!(link);
    program.child.stdin.write('done\n');
  }
  return lines;
}

/** Read after each line, so that it is known who said what. */
const mark = 'get /mark';

/** ZooKeeper's own shell in C: each line of the script, and below it what was said to it. */
export async function playCli(
  cli: string,
  address: string,
  script: readonly string[],
): Promise<string[]> {
  await using program = start(cli, ['-h', address]);
  const { stdin, stderr } = program.child;
  const told: string[] = [];
  const heard = createInterface(stderr)[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await heard.next();
    if (done) throw new Error(`the shell ended; before that it said ${told.slice(-10).join('\n')}`);
    return value as string;
  };
  while (!/CONNECTED_STATE/.test(await next()));
  await next(); // the id of the session
  stdin.write('create /mark\n');
  while (!/name = \/mark/.test(await next()));
  for (const line of script) {
    told.push(`> ${line}`);
    stdin.write(`${line}\n${mark}\n`);
    for (;;) {
      const said = await next();
      if (said === '/mark: rc = 0') break;
      told.push(said);
    }
    while (!/ephemeralOwner/.test(await next()));
  }
  stdin.write('quit\n');
  await program.ended;
  return comparable(told);
}

/** The same shell with one command, after which it ends by itself. */
export async function playBatch(cli: string, address: string, command: string): Promise<string[]> {
  await using program = start(cli, ['-h', address, '-c', command]);
  const told: string[] = [];
  for await (const line of createInterface(program.child.stderr)) told.push(line);
  // It connects on one thread and prints on another.
  return comparable(told.filter((line) => !/session id|SESSION_EVENT/.test(line)));
}

/** Names of children are in no order on the wire. */
function comparable(lines: readonly string[]): string[] {
  const isName = (line: string | undefined) => /^\t[^=]*$/.test(line ?? '');
  const blocks: string[][] = [];
  for (const line of lines.filter((one) => !/^time = /.test(one)).map(withoutNumbers)) {
    if (isName(line) && isName(blocks.at(-1)?.[0])) blocks.at(-1)!.push(line);
    else blocks.push([line]);
  }
  return blocks.flatMap((block) => block.sort());
}

const withoutNumbers = (line: string) =>
  line
    .replace(/(ctime ?=|mtime ?=).*/, '$1 …')
    .replace(/zxid=[0-9a-f]+/, 'zxid=…')
    .replace(/(ephemeralOwner = )(?!0$)[0-9a-f]+/, '$1…');

/** ZooKeeper's load generator for so many rounds; then it is ended and its nodes are cleaned away. */
export async function playLoad(
  load: string,
  address: string,
  nodes: number,
  rounds: number,
): Promise<string[]> {
  const told: string[] = [];
  {
    await using program = start(load, [address, '/load', String(nodes)]);
    for await (const line of createInterface(program.child.stderr)) {
      if (/Starting|Creating|Failed|Invalid/.test(line)) told.push(withoutSource(line));
      if (told.filter((one) => /^Creating/.test(one)).length > rounds) break;
    }
  }
  await using cleaner = start(load, [address, '/load', 'clean']);
  for await (const line of createInterface(cleaner.child.stderr)) {
    if (/Successfully|Failed/.test(line)) told.push(withoutSource(line));
  }
  const [status] = await cleaner.ended;
  told.push(`ended with ${status}`);
  return told;
}

/** A line of the library's log opens with when, which thread and which source line. */
const withoutSource = (line: string) =>
  line.replace(/^.*?ZOO_\w+@\w+@\d+: /, '').replace(/\(\d+ nodes\)/, '(… nodes)');
