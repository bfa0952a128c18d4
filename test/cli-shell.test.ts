/**
 * `drover shell` in a real pseudo-terminal, as a person has it: prompt, Tab, history, Ctrl-R, Ctrl-C,
 * questions, and watches that speak up while somebody types. Python's pty module holds the other end.
 */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Client, connect } from '../src/client/index.ts';
import { startTestServer } from '../src/testing/index.ts';

vi.setConfig({ testTimeout: 60_000 });

const root = resolve(import.meta.dirname, '..');
const main = join(root, 'src/cli/main.ts');
const tsx = import.meta.resolve('tsx');
const hasPty = spawnSync('python3', ['-c', 'import pty']).status === 0;
const waitMs = 30_000;

let folder: string;
const running = new Set<ChildProcess>();

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'drover-shell-'));
});

afterEach(async () => {
  for (const child of running) {
    child.kill('SIGKILL');
    await once(child, 'close');
  }
  rmSync(folder, { recursive: true, force: true });
});

/** A program at a terminal of 100 columns. What it prints is heard without its colours and jumps. */
class Terminal {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  #heard = '';
  /** All of it, jumps included. */
  raw = '';

  constructor(args: readonly string[], env: Record<string, string> = {}) {
    const python = 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)';
    const command = 'stty cols 100 rows 30; exec "$@"';
    this.child = spawn(
      'python3',
      ['-c', python, 'sh', '-c', command, 'sh', process.execPath, '--import', tsx, main, ...args],
      {
        cwd: folder,
        env: { PATH: process.env.PATH!, TERM: 'xterm', HOME: folder, ...env },
        stdio: ['pipe', 'pipe', 'inherit'],
      },
    );
    running.add(this.child);
    this.child.stdout!.setEncoding('utf8').on('data', (chunk) => {
      this.#heard += chunk;
      this.raw += chunk;
    });
    this.ended = once(this.child, 'close').then(([code]) => {
      running.delete(this.child);
      return code as number | null;
    });
  }

  type(text: string): void {
    this.child.stdin!.write(text);
  }

  /** Waits for it, and gives what was heard up to its end; what follows is kept. */
  async hears(pattern: RegExp): Promise<string> {
    let text = '';
    await vi.waitFor(
      () => {
        text = plain(this.#heard);
        if (!pattern.test(text))
          throw new Error(`not heard: ${pattern} in ${JSON.stringify(text)}`);
      },
      { timeout: waitMs, interval: 10 },
    );
    this.#heard = '';
    return text;
  }

  /** Types the text, sees it, and then presses Tab by itself until it hears: together they would be a paste. */
  async completes(text: string, pattern: RegExp): Promise<string> {
    this.type(text);
    const shown = text.replaceAll('\x03', '');
    await this.hears(new RegExp(`${shown.replace(/[/$-]/g, '\\$&')}$`));
    let heard = '';
    await vi.waitFor(
      () => {
        heard = plain(this.#heard);
        if (pattern.test(heard)) return;
        this.type('\t');
        throw new Error(`not heard: ${pattern} in ${JSON.stringify(heard)}`);
      },
      { timeout: waitMs, interval: 300 },
    );
    this.#heard = '';
    return heard;
  }
}

function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is taken out
  return text.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, '').replace(/\r/g, '');
}

const prompt = /\) \/\S*> $/;

async function started(client: Client, port: number): Promise<Terminal> {
  await client.create('/brokers');
  for (const name of ['ids', 'topics']) await client.create(`/brokers/${name}`, name);
  const shell = new Terminal(['shell', '--server', `127.0.0.1:${port}`]);
  await shell.hears(prompt);
  return shell;
}

describe.skipIf(!hasPty)('in a terminal', () => {
  test('a command beside a test server has a Ctrl-C from the terminal, and not from us as well', async () => {
    const script = `
      let interrupted = 0;
      process.on('SIGINT', () => { interrupted += 1; });
      process.on('SIGTERM', () => process.exit(40 + interrupted));
      for (const signal of ['SIGINT', 'SIGTERM']) process.kill(process.ppid, signal);
      setInterval(() => {}, 1_000);`;
    const terminal = new Terminal(['test-server', '--', process.execPath, '-e', script]);

    expect(await terminal.ended).toBe(40);
  });

  test('Tab completes commands, flags and paths, fuzzily too', async () => {
    await using server = await startTestServer();
    const client = await connect(`127.0.0.1:${server.port}`);
    const shell = await started(client, server.port);

    await shell.completes('getAcl /bro', /kers/);
    await shell.completes('/i', /ds/);
    shell.type('\r');
    await shell.hears(/'world,'anyone\n: cdrwa\n.*> $/);
    await shell.completes('get /br/to', /get \/brokers\/topics/);
    shell.type('\r');
    await shell.hears(/\ntopics\n.*> $/);
    await shell.completes('delqu', /ota $/);
    await shell.completes('\x03dlq', /delquota $/);
    await shell.completes('\x03ls --conn', /ect-timeout/);
    await shell.completes('\x03ls /brokers/', /\/brokers\/ids +\/brokers\/topics/);
    await client.close();
  });

  test.runIf(existsSync('/proc/self'))(
    'a history that can not be kept is said, and no more',
    async () => {
      await using server = await startTestServer();
      const shell = new Terminal(['shell', '--server', `127.0.0.1:${server.port}`], {
        DROVER_HISTORY: '/proc/x/history',
      });

      await shell.hears(/no history: ENOENT.*\n.*\) \/\S*> $/);
      shell.type('quit\r');

      expect(await shell.ended).toBe(0);
    },
  );

  test('history stays on disk without secrets, and Ctrl-R finds in it', async () => {
    await using server = await startTestServer();
    const client = await connect(`127.0.0.1:${server.port}`);
    const first = await started(client, server.port);
    first.type('create /kept x\r');
    await first.hears(/Created \/kept\n.*> $/);
    for (const secret of [
      'addauth digest ann:canary',
      '"ADDAUTH" digest ann:canary',
      'ls / --aut digest:ann:canary',
      'context add p --server h --store-auth digest:ann:canary',
    ]) {
      first.type(`${secret}\r`);
      await first.hears(/canary[^>]*\n.*> $/);
    }
    first.type('ls /brokers\r');
    await first.hears(/\[ids, topics\]\n.*> $/);
    first.type('quit\r');
    expect(await first.ended).toBe(0);
    const file = join(folder, '.local/state/drover/history');

    const second = new Terminal(['shell', '--server', `127.0.0.1:${server.port}`]);
    await second.hears(prompt);
    second.type('\x1b[A\x1b[A\r');
    // Its answer, and the prompt behind it: what is typed before may be for the line that runs.
    await second.hears(/\[ids, topics\]\n.*> $/);
    second.type('\x12kept');
    await second.hears(/create \/kept x/);
    second.type('\r');
    await second.hears(/NODE_EXISTS/);
    second.type('\x04');

    expect(await second.ended).toBe(0);
    expect(readFileSync(file, 'utf8')).not.toContain('canary');
    expect(readFileSync(file, 'utf8')).toContain('create /kept x');
    expect(statSync(file).mode & 0o077).toBe(0);
    await client.close();
  });

  test('Ctrl-C clears what is typed, stops what runs, and leaves the shell alone', async () => {
    await using server = await startTestServer();
    const client = await connect(`127.0.0.1:${server.port}`);
    const shell = await started(client, server.port);

    shell.type('deleteall /brokers\x03');
    await shell.hears(/deleteall \/brokers\n.*> $/);
    shell.type('watch -r /\r');
    await shell.hears(/watching \/ and all below it/);
    await client.create('/seen', 'x');
    await shell.hears(/created +\/seen/);
    shell.type('\x03');
    await shell.hears(prompt);
    shell.type('ls /\r');
    await shell.hears(/\[brokers, seen, zookeeper\]\n.*> $/);
    shell.type('deleteall /brokers\r');
    await shell.hears(/and 2 nodes below it.*\[y\/N\] $/);
    shell.type('\x03');
    await shell.hears(/interrupted\n.*> $/);
    shell.type('deleteall /brokers\r');
    await shell.hears(/\[y\/N\] $/);
    shell.type('n\r');
    await shell.hears(/nothing was deleted\n.*> $/);
    expect(await client.exists('/brokers/ids')).not.toBeNull();
    shell.type('rmr /brokers\r');
    await shell.hears(/\[y\/N\] $/);
    shell.type('y\r');
    await shell.hears(/3 nodes were deleted\n.*> $/);
    expect(await client.exists('/brokers')).toBeNull();
    await client.close();
  });

  test('watches speak between prompts, and what is typed stays', async () => {
    await using server = await startTestServer();
    const client = await connect(`127.0.0.1:${server.port}`);
    const shell = await started(client, server.port);
    shell.type('get -w /brokers/ids\r');
    await shell.hears(/ids\n.*> $/);
    shell.type('ls /bro');
    await shell.hears(/ls \/bro$/);

    await client.set('/brokers/ids', 'new');
    await shell.hears(/WATCHER::\n\nWatchedEvent .*path:\/brokers\/ids.*\n.*> ls \/bro$/);
    shell.type('kers\r');

    await shell.hears(/\[ids, topics\]\n.*> $/);
    await client.close();
  });

  test('a watch that speaks while a line of several rows is typed is seen in full', async () => {
    await using server = await startTestServer();
    const client = await connect(`127.0.0.1:${server.port}`);
    const shell = await started(client, server.port);
    shell.type('addWatch /brokers\r');
    await shell.hears(prompt);
    const typed = `create /brokers/x ${'long-'.repeat(40)}end`;
    shell.type(typed);
    await shell.hears(/end$/);

    await client.set('/brokers', 'new');
    await shell.hears(/WatchedEvent .*path:\/brokers [\s\S]*end$/);
    await client.set('/brokers', 'newer'); // by now the editor knows how many rows there are
    await shell.hears(/WatchedEvent .*path:\/brokers [\s\S]*end$/);

    // biome-ignore lint/suspicious/noControlCharactersInRegex: a jump up is what must not follow
    expect(shell.raw.slice(shell.raw.lastIndexOf('WatchedEvent'))).not.toMatch(/\x1b\[\d*A/);
    shell.type('\r');
    await shell.hears(/Created \/brokers\/x\n/);
    await client.close();
  });

  test.each([
    ['while a line runs', 'watch /brokers\r', /watching \/brokers/],
    ['at a question', 'deleteall /brokers\r', /\[y\/N\] $/],
  ])('Ctrl-D leaves %s', async (_, line, heard) => {
    await using server = await startTestServer();
    const client = await connect(`127.0.0.1:${server.port}`);
    const shell = await started(client, server.port);
    shell.type(line);
    await shell.hears(heard);

    shell.type('\x04');

    expect(await shell.ended).toBe(0);
    expect(await client.exists('/brokers/ids')).not.toBeNull();
    await client.close();
  });

  test('lines that are pasted together run one after the other; redo runs one again', async () => {
    await using server = await startTestServer();
    const client = await connect(`127.0.0.1:${server.port}`);
    const shell = await started(client, server.port);

    shell.type('create /p\rcreate /p/q\rcreate /p/q/r\rls -R /p\r');
    await shell.hears(/\/p\n\/p\/q\n\/p\/q\/r\n.*> $/);
    shell.type('history\r');
    await shell.hears(/0 - create \/p\n1 - create \/p\/q\n[\s\S]*4 - history\n.*> $/);
    shell.type('redo 3\r');

    await shell.hears(/\/p\n\/p\/q\n\/p\/q\/r\n.*> $/);
    await client.close();
  });

  test('edit opens the editor, writes back, and refuses where somebody was faster', async () => {
    await using server = await startTestServer();
    const client = await connect(`127.0.0.1:${server.port}`);
    await client.create('/brokers', 'old');
    const editor = join(folder, 'editor');
    const address = `127.0.0.1:${server.port}`;
    writeFileSync(
      editor,
      '#!/bin/sh\nprintf " and new" >> "$1"\n[ -e wait ] && cat fifo\nexit 0\n',
    );
    chmodSync(editor, 0o755);
    const shell = new Terminal(['shell', '--server', address], { EDITOR: editor });
    await shell.hears(prompt);

    shell.type('edit /brokers\r');
    await shell.hears(/wrote \/brokers, version 1\n.*> $/);
    expect((await client.get('/brokers')).data?.toString()).toBe('old and new');
    expect(spawnSync('mkfifo', ['fifo'], { cwd: folder }).status).toBe(0);
    writeFileSync(join(folder, 'wait'), '');
    shell.type('edit /brokers\r');
    const opened = spawn('sh', ['-c', 'exec 3> fifo; echo open; read line'], { cwd: folder });
    running.add(opened);
    await once(opened.stdout, 'data');
    await client.set('/brokers', 'theirs');
    opened.stdin.end('go on\n');
    await once(opened, 'close');
    running.delete(opened);
    const said = await shell.hears(/BAD_VERSION.*\n.*> $/);

    expect(said).toMatch(/what was edited is kept in (\S+)\n/);
    const kept = /kept in (\S+)\n/.exec(said)![1]!;
    expect(readFileSync(kept, 'utf8')).toBe('old and new and new');
    expect(said).toContain('+ theirs');
    expect((await client.get('/brokers')).data?.toString()).toBe('theirs');
    rmSync(resolve(kept, '..'), { recursive: true });
    await client.close();
  });

  test('names and data out of hostile hands do nothing to the terminal', async () => {
    await using server = await startTestServer();
    const client = await connect(`127.0.0.1:${server.port}`);
    const shell = await started(client, server.port);
    const evil = '\u202eevil\u200b';
    await client.create(`/brokers/${evil}`, '\x1b]0;owned\x07\x1b[2J\u202e\r\nnext');

    shell.type('ls /brokers\r');
    const names = await shell.hears(/\[[^\]]*\]\n.*> $/);
    shell.type('tree /brokers --stat\r');
    const drawn = await shell.hears(/nodes\n.*> $/);
    shell.type('grep next /\r');
    const found = await shell.hears(/next\n.*> $/);
    const offered = await shell.completes('get /brokers/', /ids +\/brokers\/topics/);

    for (const text of [names, drawn, found, offered]) {
      for (const bad of ['\u202e', '\u200b', '\x07', '\x1b']) expect(text).not.toContain(bad);
    }
    expect(names).toContain('\\u202eevil\\u200b');
    await client.close();
  });

  test('a server that is not there is said, and connect tries again', async () => {
    const shell = new Terminal(['shell', '--server', '127.0.0.1:1', '--connect-timeout', '300']);
    await shell.hears(
      /ECONNREFUSED[\s\S]*connect tries again\n\(127.0.0.1:1, not connected\) \/> $/,
    );
    await using server = await startTestServer();
    shell.type(`connect 127.0.0.1:${server.port}\r`);
    await shell.hears(/connected to[\s\S]*> $/);
    shell.type('ls /\r');
    await shell.hears(/\[zookeeper\]\n.*> $/);
    shell.type('quit\r');

    expect(await shell.ended).toBe(0);
    expect(existsSync(join(folder, '.local/state/drover/history'))).toBe(true);
  });

  test('by itself, deleteall asks at a terminal', async () => {
    await using server = await startTestServer();
    const client = await connect(`127.0.0.1:${server.port}`);
    await client.create('/a');
    await client.create('/a/b');
    const command = ['deleteall', '/a', '--server', `127.0.0.1:${server.port}`];

    const no = new Terminal(command);
    await no.hears(/delete \/a and 1 node below it.*\[y\/N\] $/);
    no.type('no\r');
    expect(await no.ended).toBe(9);
    expect(await client.exists('/a/b')).not.toBeNull();
    const left = new Terminal(command);
    await left.hears(/\[y\/N\] $/);
    left.type('\x04');
    expect(await left.ended).toBe(9);
    const interrupted = new Terminal(command);
    await interrupted.hears(/\[y\/N\] $/);
    interrupted.type('\x03');
    expect(await interrupted.ended).toBe(130);
    const yes = new Terminal(command);
    await yes.hears(/\[y\/N\] $/);
    yes.type('y\r');
    expect(await yes.ended).toBe(0);
    expect(await client.exists('/a')).toBeNull();
    await client.close();
  });
});
