import * as crypto from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { digestId, openAcl } from '../protocol/index.ts';
import { addressMatches, isAddressRange } from './addresses.ts';
import { Auth, superId } from './auth.ts';

vi.mock('node:crypto', async (original) => {
  const real = await original<typeof crypto>();
  return { ...real, timingSafeEqual: vi.fn(real.timingSafeEqual) };
});

test.each([
  ['127.0.0.1', '127.0.0.1', true],
  ['127.0.0.1', '127.0.0.0/8', true],
  ['128.0.0.1', '127.0.0.0/8', false],
  ['10.1.2.3', '10.1.2.0/23', true],
  ['10.1.3.3', '10.1.2.0/23', true],
  ['10.1.4.3', '10.1.2.0/23', false],
  ['10.1.2.3', '0.0.0.0/0', true],
  ['fe80::1', 'fe80::/10', true],
  ['::1', '::1', true],
  ['::1', '::2/127', false],
  ['127.0.0.1', '::/0', false],
])('%s is meant by %s: %s', (address, range, meant) => {
  expect(addressMatches(address, range)).toBe(meant);
});

test.each(['300.1.1.1', '1.2.3', '1.2.3.4/33', '1.2.3.4/x', '::1::', '1:2', 'x', '', '12345::'])(
  '%j can stand in no ACL',
  (range) => {
    expect(isAddressRange(range)).toBe(false);
  },
);

test.each([
  ['a:b', true],
  [':b', true],
  ['a:b:', true],
  ['a:', false],
  ['a', false],
  ['a:b:c', false],
  ['', false],
])('a digest id %j is legal: %s', (id, legal) => {
  const acl = [{ perms: 31, id: { scheme: 'digest', id } }];

  expect(new Auth().fixUp(acl, []) !== null).toBe(legal);
});

test('the open ACL is one and the same, so that it is known at a glance', () => {
  const acl = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];

  expect(new Auth().fixUp(acl, [])).toBe(openAcl);
});

test('sasl and x509 ids are legal only where somebody proves them, and matched as they are', () => {
  const id = { scheme: 'sasl', id: 'bob' };
  const acl = [{ perms: 1, id }];
  const auth = new Auth({ extraSchemes: ['sasl'] });

  expect(new Auth().fixUp(acl, [])).toBeNull();
  expect(auth.fixUp(acl, [])).toEqual(acl);
  expect(auth.permits(acl, 1, [id])).toBe(true);
  expect(auth.permits(acl, 1, [{ scheme: 'sasl', id: 'Bob' }])).toBe(false);
});

test('hashes of passwords are compared in a time that tells nothing, and only under one name', () => {
  const [right, wrong, other] = ['ann:right', 'ann:wrong', 'bob:right'].map((each) =>
    digestId(each),
  );
  const auth = new Auth({ superDigest: digestId('super:test').id });
  const compared = vi.mocked(crypto.timingSafeEqual);
  const acl = [{ perms: 31, id: right! }];
  compared.mockClear();

  expect(auth.permits(acl, 1, [right!])).toBe(true);
  expect(auth.permits(acl, 1, [wrong!])).toBe(false);
  expect(compared).toHaveBeenCalledTimes(2);
  expect(auth.permits(acl, 1, [other!])).toBe(false);
  expect(compared).toHaveBeenCalledTimes(2);

  expect(auth.prove('digest', Buffer.from('super:test'), '::1')).toContain(superId);
  expect(auth.prove('digest', Buffer.from('super:tess'), '::1')).not.toContain(superId);
  expect(compared).toHaveBeenCalledTimes(4);
});

test('digest is no scheme where it is switched off: neither a proof nor fit for an ACL', () => {
  const auth = new Auth({
    digestSchemeEnabled: false,
    superDigest: digestId('super:test').id,
  });
  const id = digestId('ann:right');

  expect(auth.prove('digest', Buffer.from('super:test'), '::1')).toBeNull();
  expect(auth.fixUp([{ perms: 31, id }], [])).toBeNull();
  expect(auth.permits([{ perms: 31, id }], 1, [id])).toBe(false);
});
