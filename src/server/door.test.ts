import { expect, test } from 'vitest';
import { Door } from './door.ts';
import type { Engine } from './engine.ts';
import { limitsOf } from './limits.ts';

test('the connections of a whole IPv6 /64 count as those of one address', () => {
  const limits = limitsOf({ connectionsPerAddressMax: 2 });
  const door = new Door(() => ({ limits }) as Engine);
  const first = door.enter('2001:db8:1:2::1');
  door.enter('2001:db8:1:2::2');

  expect(door.enter('2001:db8:1:2:ffff::3')).toBeUndefined();
  expect(door.enter('2001:db8:1:3::1')).toBeDefined();
  first!();
  expect(door.enter('2001:db8:1:2::4')).toBeDefined();
});
