import { expect, test } from 'vitest';
import { StorageError } from '../storage/index.ts';
import { exitCodes } from './exit-codes.ts';
import { asCommandError } from './serve-errors.ts';

const noLock = (code: string) =>
  new StorageError('UNSAFE_DIRECTORY', `no lock could be made: Error: listen ${code}`, {
    cause: Object.assign(new Error(`listen ${code}`), { code, syscall: 'listen' }),
    file: 'data/version-2',
  });

test('a folder in which no lock may be made is one that this user can not write to', () => {
  expect(asCommandError(noLock('EACCES'))).toMatchObject({
    exitCode: exitCodes.data,
    message:
      "data/version-2 can't be written (EACCES); give this user the right to, or name another folder with --data",
  });
});

test('a file that can not be read is named, and not said to be one that can not be written', () => {
  const error = Object.assign(new Error('EIO: i/o error, read'), {
    ...{ code: 'EIO', syscall: 'read', path: 'data/version-2/log.5' },
  });

  expect(asCommandError(error)).toMatchObject({
    exitCode: exitCodes.data,
    message:
      "data/version-2/log.5 can't be read (EIO); the disk fails: look at the system log, or name another folder with --data",
  });
});

test('where the system has no locks, nobody is told that rights are missing', () => {
  expect(asCommandError(noLock('ENOTSUP'))).toMatchObject({
    exitCode: exitCodes.data,
    message: expect.stringMatching(/no lock could be made: Error: listen ENOTSUP/),
  });
});
