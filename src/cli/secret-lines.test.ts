import { expect, test } from 'vitest';
import { holdsSecret } from './secret-lines.ts';

test.each([
  'addauth digest ann:canary',
  '  addauth digest ann:canary',
  'ADDAUTH digest ann:canary',
  '"addauth" digest ann:canary',
  "'AddAuth' digest ann:canary",
  '"addauth digest ann:canary',
  'ls / --auth digest:ann:canary',
  'ls / "--auth" digest:ann:canary',
  'ls / --auth=digest:ann:canary',
  'ls / --AUTH digest:ann:canary',
  'ls / --aut digest:ann:canary',
  'ls / -auth digest:ann:canary',
  'ls / --au digest:ann:canary',
  'context add prod --server h --store-auth digest:ann:canary',
  'ls / --sasl-password canary',
  'console --token canary',
])('%s is not kept', (line) => {
  expect(holdsSecret(line)).toBe(true);
});

test.each([
  'ls /addauth',
  'get -s /auth',
  'create /author x',
  'help addauth',
  'ls -R /',
  'rmr -a',
  '',
])('%s is kept', (line) => {
  expect(holdsSecret(line)).toBe(false);
});
