import { expect, test } from 'vitest';
import { closesMax, Dispute } from './dispute.ts';

/** A link that begins at `fromMs` and is closed by the server after `livedMs`. */
function link(of: Dispute, fromMs: number, livedMs: number, hadAnswer = true) {
  const mustShow = of.welcomed(fromMs);
  return { mustShow, isTaken: of.closed(fromMs + livedMs, hadAnswer) };
}

test('links that are closed right after each other, the last on nothing but a ping, mean another client', () => {
  const it = new Dispute(closesMax.owner);

  expect(link(it, 0, 60_000)).toEqual({ mustShow: 'nothing', isTaken: false });
  expect(link(it, 60_005, 5)).toEqual({ mustShow: 'answers', isTaken: false });
  expect(link(it, 60_015, 5)).toEqual({ mustShow: 'lasts', isTaken: false });
  expect(link(it, 60_025, 5)).toEqual({ mustShow: 'lasts', isTaken: false });
  expect(link(it, 60_035, 5)).toEqual({ mustShow: 'lasts', isTaken: false });
  expect(link(it, 60_045, 5)).toEqual({ mustShow: 'lasts', isTaken: true });
});

test('a client that took the session over bears more than the one that it took it from', () => {
  const [owner, heir] = [new Dispute(closesMax.owner), new Dispute(closesMax.heir)];
  const turns: string[] = [];
  owner.welcomed(0);
  for (let ms = 60_000; turns.length < 20; ms += 10) {
    heir.welcomed(ms);
    turns.push('owner');
    if (owner.closed(ms, true)) break;
    owner.welcomed(ms + 5);
    turns.push('heir');
    if (heir.closed(ms + 5, true)) break;
  }

  expect(turns.at(-1)).toBe('owner');
  expect(turns).toHaveLength(11);
});

test('a probe that was closed before its ping was answered proves nothing', () => {
  const it = new Dispute(closesMax.owner);
  link(it, 0, 5_000);
  link(it, 5_005, 5);

  for (let i = 0; i < 50; i++) {
    expect(link(it, 5_100 + i * 10, 1, false)).toEqual({ mustShow: 'lasts', isTaken: false });
  }
});

test.each([
  ['a server was away in between', [0, 5_000], [8_000, 5], [12_000, 5], [16_000, 5]],
  ['each link lasted', [0, 5_000], [5_001, 2_500], [7_502, 2_500], [10_003, 2_500]],
  ['a link lasted again', [0, 5_000], [5_001, 3_000], [8_002, 3_000]],
] as [string, ...[number, number][]][])('it is no dispute when %s', (_, ...links) => {
  const it = new Dispute(2);

  const taken = links.map(([fromMs, livedMs]) => link(it, fromMs, livedMs).isTaken);

  expect(taken).toEqual(links.map(() => false));
});

test('a link that was lost for a reason of its own begins the count anew', () => {
  const it = new Dispute(closesMax.owner);
  link(it, 0, 5_000);
  link(it, 5_001, 5);
  it.lost();

  expect(link(it, 5_010, 5)).toEqual({ mustShow: 'nothing', isTaken: false });
});
