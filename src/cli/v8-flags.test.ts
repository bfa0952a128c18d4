import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { servingFlags } from './v8-flags.ts';

/** V8 says so on standard error, and goes on. */
test.each(servingFlags)('this V8 knows %s, and takes it while it runs', (flag) => {
  const name = flag.slice(2, flag.indexOf('='));
  const script = `require('node:v8').setFlagsFromString(${JSON.stringify(flag)})`;

  const set = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' });
  const listed = spawnSync(process.execPath, ['--v8-options'], { encoding: 'utf8' });

  expect(set).toMatchObject({ status: 0, stderr: '' });
  expect(listed.stdout).toContain(`--${name} `);
});
