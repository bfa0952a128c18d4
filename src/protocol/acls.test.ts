import { expect, test } from 'vitest';
import { creatorAcl, digestId, openAcl, permsOf, permsText, readOnlyAcl } from './acls.ts';

test('permissions are printed in the order of zkCli, and read in any', () => {
  expect(permsText(31)).toBe('cdrwa');
  expect([1, 2, 4, 8, 16].map(permsText)).toEqual(['r', 'w', 'c', 'd', 'a']);
  expect(permsText(0)).toBe('');
  for (let perms = 0; perms < 32; perms++) expect(permsOf(permsText(perms))).toBe(perms);
  expect(permsOf('adcwr')).toBe(31);
  expect(permsOf('rr')).toBe(1);
});

test('a letter that is no permission is refused', () => {
  for (const text of ['x', 'rwx', 'R', ' ', 'r,w']) expect(permsOf(text)).toBeNull();
});

test('a digest id is the one that Apache makes', () => {
  // As `java org.apache.zookeeper.server.auth.DigestAuthenticationProvider super:test` prints it.
  expect(digestId('super:test')).toEqual({
    scheme: 'digest',
    id: 'super:D/InIHSb7yEEbrWz8b9l71RjZJU=',
  });
});

test('only the first colon parts user from password, and all of it is hashed', () => {
  expect(digestId('u:a:b').id).toMatch(/^u:[A-Za-z0-9+/]{27}=$/);
  expect(digestId('u:a:b')).not.toEqual(digestId('u:a'));
  expect(digestId('nobody').id).toMatch(/^nobody:/);
});

test('another algorithm makes another id', () => {
  expect(digestId('super:test', 'sha256').id).toBe(
    'super:wjySwxg860UATFtciuZ1lpzrCHrPeov6SPu/ZD56uig=',
  );
});

test('the usual lists are those of ZooDefs.Ids', () => {
  expect(openAcl).toEqual([{ perms: 31, id: { scheme: 'world', id: 'anyone' } }]);
  expect(readOnlyAcl).toEqual([{ perms: 1, id: { scheme: 'world', id: 'anyone' } }]);
  expect(creatorAcl).toEqual([{ perms: 31, id: { scheme: 'auth', id: '' } }]);
});
