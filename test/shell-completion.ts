/**
 * Completion in a real shell at a real pseudo-terminal: what Tab makes of a line, and what Enter runs.
 *
 * The shell finds a `drover` that answers `complete` and `completion` as ours does and otherwise prints
 * the words that it was given. Python's pty module holds the other end of the terminal.
 */

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, vi } from 'vitest';
import { connect } from '../src/client/index.ts';
import { startTestServer } from '../src/testing/index.ts';

export type ShellName = 'bash' | 'zsh' | 'fish';

const shells: Record<ShellName, { readonly argv: readonly string[]; readonly setUp: string }> = {
  bash: {
    argv: ['bash', '--noprofile', '--norc', '-i'],
    setUp: 'source <(drover completion bash)',
  },
  zsh: {
    argv: ['zsh', '-f', '-i'],
    setUp: 'autoload -Uz compinit; compinit -u -D; source <(drover completion zsh)',
  },
  fish: { argv: ['fish', '--no-config', '-i'], setUp: 'drover completion fish | source' },
};

export function hasShell(name: ShellName): boolean {
  const hasPty = spawnSync('python3', ['-c', 'import pty']).status === 0;
  return hasPty && spawnSync(name, ['-c', 'true']).status === 0;
}

/** Each would leave a file named `pwned` behind, should a shell run it. */
const hostileNames = [
  '$(touch pwned)',
  '`touch pwned`',
  'a;touch pwned',
  "';touch pwned;'",
  '";touch pwned;"',
  '(touch pwned)',
  'a>pwned',
];
const plainNames = ['größe-日本', 'a:b=c', 'x%y,z@1+2_3', '=ls'];

/** Plants hostile and plain names, completes each by Tab, presses Enter, and looks at what ran. */
export async function checkCompletion(name: ShellName): Promise<void> {
  await using server = await startTestServer();
  const client = await connect(server.address);
  for (const [i, hostile] of hostileNames.entries()) {
    await client.create(`/hostile-${i}`);
    await client.create(`/hostile-${i}/${hostile}`);
  }
  for (const [i, plain] of plainNames.entries()) {
    await client.create(`/plain-${i}`);
    await client.create(`/plain-${i}/${plain}`);
  }
  await client.create('/--server=elsewhere');
  await client.close();
  await using shell = await start(name, server.address);

  for (const [i, plain] of plainNames.entries()) {
    expect(await shell.complete(`drover get /plain-${i}/`)).toEqual([
      'get',
      `/plain-${i}/${plain}`,
    ]);
  }
  for (const i of hostileNames.keys()) {
    const ran = await shell.complete(`drover get /hostile-${i}/`);
    expect({ ran, isPwned: shell.isPwned() }).toEqual({
      ran: ['get', `/hostile-${i}/`],
      isPwned: false,
    });
  }
  // Within double quotes a shell still runs $(…).
  expect(await shell.complete('drover get "/hostile-0/', '"')).toEqual(['get', '/hostile-0/']);
  expect(await shell.complete('drover get --server=else')).toEqual(['get', '--server=else']);
  expect(shell.isPwned()).toBe(false);
}

async function start(name: ShellName, address: string) {
  const folder = mkdtempSync(join(tmpdir(), 'drover-completion-'));
  const root = resolve(import.meta.dirname, '..');
  const real = [
    ...[process.execPath, '--import', import.meta.resolve('tsx'), join(root, 'src/cli/main.ts')],
  ];
  const quoted = real.map((word) => `'${word}'`).join(' ');
  const drover = [
    '#!/bin/sh',
    `case "$1" in complet*) exec ${quoted} "$@" ;; esac`,
    'for word; do printf "<%s>" "$word"; done; echo',
  ];
  writeFileSync(join(folder, 'drover'), `${drover.join('\n')}\n`, { mode: 0o755 });
  const { argv, setUp } = shells[name];
  const python = 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)';
  const child = spawn(
    'python3',
    ['-c', python, 'sh', '-c', 'stty cols 200; exec "$@"', 'sh', ...argv],
    {
      cwd: folder,
      env: {
        ...{ PATH: `${folder}:${process.env.PATH}`, HOME: folder, TERM: 'xterm' },
        ...{ LC_ALL: 'C.UTF-8', DROVER_SERVER: address, DROVER_JOURNAL: '' },
      },
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  let heard = '';
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    heard += chunk;
  });
  const ended = once(child, 'close');
  /** What was printed up to the pattern, and nothing of it any more. */
  const hears = async (pattern: RegExp) => {
    let found: RegExpExecArray | null = null;
    await vi.waitFor(
      () => {
        found = pattern.exec(heard);
        if (found === null) throw new Error(`${pattern} not heard in ${JSON.stringify(heard)}`);
      },
      { timeout: 60_000, interval: 20 },
    );
    heard = heard.slice(found!.index + found![0].length);
    return found! as RegExpExecArray;
  };
  let round = 0;
  /** A line whose output cannot be mistaken for its own echo. */
  const sync = async () => {
    round += 1;
    child.stdin.write(`echo rou''nd-${round}-ends\r`);
    await hears(new RegExp(`round-${round}-ends`));
  };
  child.stdin.write(`${setUp}\r`);
  await sync();
  return {
    isPwned: () => existsSync(join(folder, 'pwned')),
    /** The words that `drover` was run with, after Tab and Enter. */
    async complete(line: string, rest = ''): Promise<string[]> {
      child.stdin.write(line);
      await hears(/[^\n]$/);
      child.stdin.write('\t');
      child.stdin.write(`${rest}\r`);
      const [said] = await hears(/(?:^|[\r\n])(<[^\r\n]*>)\r?\n/);
      await sync();
      return [...said.matchAll(/<([^>]*)>/g)].map(([, word]) => word!);
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
