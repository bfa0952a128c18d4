import { inspect } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type Identity,
  isFinal,
  next,
  type SessionEvent,
  SessionIdentity,
  type SessionState,
  type SessionStateName,
} from './session-state.ts';

const identity: Identity = { sessionId: 7n, password: Buffer.alloc(16, 1), timeoutMs: 10_000 };

const states: { readonly [S in SessionStateName]: SessionState } = {
  connecting: { name: 'connecting' },
  connected: { name: 'connected', identity, readOnly: false, deadlineMs: 10_000 },
  suspended: { name: 'suspended', identity, deadlineMs: 10_000 },
  expired: { name: 'expired' },
  authFailed: { name: 'authFailed' },
  closed: { name: 'closed' },
};

const cause = new Error('why');
const events: { readonly [E in SessionEvent['type']]: SessionEvent } = {
  welcomed: { type: 'welcomed', identity, readOnly: true, sentMs: 5_000 },
  answered: { type: 'answered', sentMs: 5_000 },
  lost: { type: 'lost' },
  refused: { type: 'refused', cause },
  authRefused: { type: 'authRefused', cause },
  closeAsked: { type: 'closeAsked', cause },
  ticked: { type: 'ticked', nowMs: 20_000, cause },
};

/** What each event makes of each state; whoever is not named stays as it is. */
const walk: Record<SessionStateName, Partial<Record<SessionEvent['type'], SessionState>>> = {
  connecting: {
    welcomed: { name: 'connected', identity, readOnly: true, deadlineMs: 15_000 },
    refused: { name: 'expired', cause },
    authRefused: { name: 'authFailed', cause },
    closeAsked: { name: 'closed', cause },
  },
  connected: {
    answered: { name: 'connected', identity, readOnly: false, deadlineMs: 15_000 },
    lost: { name: 'suspended', identity, deadlineMs: 10_000 },
    refused: { name: 'expired', cause },
    authRefused: { name: 'authFailed', cause },
    closeAsked: { name: 'closed', cause },
    ticked: { name: 'expired', cause },
  },
  suspended: {
    welcomed: { name: 'connected', identity, readOnly: true, deadlineMs: 15_000 },
    refused: { name: 'expired', cause },
    authRefused: { name: 'authFailed', cause },
    closeAsked: { name: 'closed', cause },
    ticked: { name: 'expired', cause },
  },
  expired: {},
  authFailed: {},
  closed: {},
};

const stateNames = Object.keys(states) as SessionStateName[];
const eventTypes = Object.keys(events) as SessionEvent['type'][];
const cells = stateNames.flatMap((state) => eventTypes.map((event) => [state, event] as const));

test.each(cells)('%s, then %s, leads where the table says', (state, event) => {
  const after = next(states[state], events[event]);

  const expected = walk[state][event];
  if (expected === undefined) expect(after).toBe(states[state]);
  else expect(after).toEqual(expected);
});

test('the ends are expired, authFailed and closed, and nothing leads out of them', () => {
  expect(stateNames.filter((name) => isFinal(states[name]))).toEqual([
    'expired',
    'authFailed',
    'closed',
  ]);
  for (const name of ['expired', 'authFailed', 'closed'] as const) {
    for (const event of eventTypes) expect(next(states[name], events[event])).toBe(states[name]);
  }
});

test('the session is over at the deadline to the millisecond, and not before it', () => {
  for (const state of [states.connected, states.suspended]) {
    expect(next(state, { type: 'ticked', nowMs: 9_999.999 })).toBe(state);
    expect(next(state, { type: 'ticked', nowMs: 10_000 }).name).toBe('expired');
  }
});

test('the deadline counts from when an answered request left, and an older answer does not move it back', () => {
  const later = next(states.connected, { type: 'answered', sentMs: 3_000 });
  const same = next(later, { type: 'answered', sentMs: 2_000 });

  expect(later).toMatchObject({ deadlineMs: 13_000 });
  expect(same).toBe(later);
});

test('a lost link moves the deadline neither way', () => {
  fc.assert(
    fc.property(fc.nat(1_000_000), fc.nat(1_000_000), (deadlineMs, sentMs) => {
      const connected: SessionState = { name: 'connected', identity, readOnly: false, deadlineMs };

      const answered = next(connected, { type: 'answered', sentMs });
      const suspended = next(answered, { type: 'lost' });

      expect(suspended).toEqual({
        name: 'suspended',
        identity,
        deadlineMs: Math.max(deadlineMs, sentMs + identity.timeoutMs),
      });
    }),
  );
});

test('an identity gives its password to whoever asks, and does not print it', () => {
  const password = Buffer.from('0123456789abcdef');
  const secret = new SessionIdentity({ sessionId: 1n, password, timeoutMs: 4_000 });

  expect(secret.password).toEqual(password);
  const { sessionId: _, ...printed } = secret;
  expect(inspect(secret, { depth: 9, showHidden: true })).not.toMatch(/30 31 32|0123456789/);
  expect(JSON.stringify(printed)).toBe('{"timeoutMs":4000}');
});
