import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readPlainFile, readPlainFileSync } from './plain-file.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'drover-plain-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

test('a plain file is read, also through a link', async () => {
  const path = join(folder, 'file');
  writeFileSync(path, 'text');

  expect(String(await readPlainFile(path))).toBe('text');
  expect(String(readPlainFileSync(path))).toBe('text');
});

test.skipIf(process.platform === 'win32')(
  'a named pipe and a device are refused, and not waited for',
  async () => {
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const refusal = {
      code: 'NOT_A_PLAIN_FILE',
      message: `${pipe} is a named pipe, not a plain file`,
    };

    await expect(readPlainFile(pipe)).rejects.toMatchObject(refusal);
    expect(() => readPlainFileSync(pipe)).toThrow(refusal.message);
    expect(() => readPlainFileSync('/dev/zero')).toThrow('/dev/zero is a device, not a plain file');
  },
);

test.skipIf(process.platform === 'win32')(
  'a pipe that was passed on to the process is read',
  () => {
    const code = `import { readPlainFileSync } from ${JSON.stringify(join(import.meta.dirname, 'plain-file.ts'))};
    process.stdout.write(readPlainFileSync(process.argv[1]));`;
    const run = `${process.execPath} --import ${import.meta.resolve('tsx')} --input-type=module -e '${code}' <(echo said)`;

    expect(execFileSync('bash', ['-c', run], { encoding: 'utf8' })).toBe('said\n');
  },
);
