import { expect, test } from 'vitest';
import { addressKey } from './address-key.ts';

test.each([
  ['10.0.0.1', '10.0.0.1'],
  ['::ffff:10.0.0.1', '10.0.0.1'],
  ['2001:db8:1:2:a:b:c:d', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
  ['2001::5:0:0:0:1%eth0', '2001:0:0:5::/64'],
  ['2001:0:0:0005::9', '2001:0:0:5::/64'],
  ['2001::', '2001:0:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['', ''],
])('%j counts as %j', (address, key) => {
  expect(addressKey(address)).toBe(key);
});
