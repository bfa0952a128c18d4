import { expect, test } from 'vitest';
import { limits } from './api.ts';
import { AuditLog, type Noted } from './audit.ts';
import type { AuditEntry } from './views.ts';

const noted: Noted = {
  action: 'set',
  path: '/x',
  who: 'editor at 127.0.0.1',
  ok: true,
  note: null,
  count: 1,
  before: null,
  after: null,
  undo: 'possible',
};
const page = { offset: 0, limit: 10, filter: '' };
const undoOf = (bytes: number) => ({ bytes, run: async () => ({ path: '/x' }) });

test('the list is bounded, newest first, and numbers go on', () => {
  const told: AuditEntry[] = [];
  const log = new AuditLog((entry) => told.push(entry));

  for (let i = 0; i < limits.auditMax + 5; i++) log.add(noted, undoOf(0));

  expect(log.view(page)).toMatchObject({
    total: limits.auditMax,
    entries: [{ id: 1_005 }, {}, {}, {}, {}, {}, {}, {}, {}, {}],
  });
  expect([log.undoOf(5), log.undoOf(6)?.entry.id]).toEqual([null, 6]);
  expect(told).toHaveLength(limits.auditMax + 5);
});

test('ways back are kept up to a size together, and an entry says when its own is gone', () => {
  const log = new AuditLog(() => {});
  for (let i = 0; i < 40; i++) log.add(noted, undoOf(1024 * 1024));

  const { entries } = log.view({ ...page, limit: 100 });
  const possible = entries.filter(({ undo }) => undo === 'possible').map(({ id }) => id);

  expect(possible).toHaveLength(32);
  expect(Math.min(...possible)).toBe(9);
  expect(log.undoOf(8)).toBeNull();
});

test('what was done elsewhere stands among those of its time, and is told to nobody', () => {
  const told: AuditEntry[] = [];
  let nowMs = 100;
  const log = new AuditLog(
    (entry) => told.push(entry),
    () => nowMs,
  );
  log.insert({ ...noted, action: 'cli' }, undefined, 50);
  expect(log.hasOwn).toBe(false);
  log.add(noted);
  nowMs = 300;
  log.add(noted);

  log.insert({ ...noted, action: 'cli' }, undefined, 200);

  expect(log.view(page).entries.map(({ atMs }) => atMs)).toEqual([300, 200, 100, 50]);
  expect([told.length, log.hasOwn]).toEqual([2, true]);
});

test('what was taken back is marked, and can not be again', () => {
  const log = new AuditLog(() => {});
  const { id } = log.add(noted, undoOf(1));

  log.undone(id);

  expect(log.undoOf(id)).toBeNull();
  expect(log.view(page).entries).toMatchObject([{ undo: 'done' }]);
});

test('what becomes of an entry is told apart from a new one', async () => {
  const told: [number, boolean][] = [];
  const log = new AuditLog(({ id }, isNew) => told.push([id, isNew]));

  log.add(noted, undoOf(0));
  log.undone(1);

  expect(told).toEqual([
    [1, true],
    [1, false],
  ]);
});
