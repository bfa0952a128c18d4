/**
 * The life of a session, as a table: what may happen in which state, and what it leads to.
 *
 *   connecting ──welcomed──▶ connected ──lost──▶ suspended ──welcomed──▶ connected
 *        │                       │                   │
 *        └───────────── expired, authFailed, closed: no way out ────────┘
 *
 * Pure: times are handed in. `deadlineMs` is the moment, on this process's own clock, from which the
 * server may have ended the session: the time at which the last request that was answered left us,
 * plus the session timeout. The server cannot have begun to count any earlier, so before that
 * moment the session is ours for certain, and from it on nobody is told that it is.
 */

export interface Identity {
  readonly sessionId: bigint;
  readonly password: Buffer;
  readonly timeoutMs: number;
}

/** As `Identity`, with a password that is not printed with it. */
export class SessionIdentity implements Identity {
  readonly sessionId: bigint;
  readonly timeoutMs: number;
  readonly #password: Buffer;

  constructor({ sessionId, password, timeoutMs }: Identity) {
    this.sessionId = sessionId;
    this.timeoutMs = timeoutMs;
    this.#password = password;
  }

  get password(): Buffer {
    return this.#password;
  }
}

/** No session yet, and no link: nothing is known, nothing is held. */
export interface Connecting {
  readonly name: 'connecting';
}

export interface Connected {
  readonly name: 'connected';
  readonly identity: Identity;
  /** The server has lost its quorum and answers reads alone. */
  readonly readOnly: boolean;
  readonly deadlineMs: number;
}

/** The link is lost; the session and its ephemeral nodes are perhaps still there. */
export interface Suspended {
  readonly name: 'suspended';
  readonly identity: Identity;
  readonly deadlineMs: number;
}

export interface Ended {
  readonly name: 'expired' | 'authFailed' | 'closed';
  readonly cause?: unknown;
}

export type SessionState = Connecting | Connected | Suspended | Ended;
export type SessionStateName = SessionState['name'];

export type SessionEvent =
  /** A server took us in. `sentMs`: when the handshake that it answered left. */
  | { type: 'welcomed'; identity: Identity; readOnly: boolean; sentMs: number }
  /** A server answered something that left at `sentMs`. */
  | { type: 'answered'; sentMs: number }
  | { type: 'lost' }
  /** A server said that the session is over. */
  | { type: 'refused'; cause?: unknown }
  | { type: 'authRefused'; cause?: unknown }
  /** `cause`: why, where it was not the caller who asked. */
  | { type: 'closeAsked'; cause?: unknown }
  /** Time has passed. `cause`: what the last tries to connect failed with. */
  | { type: 'ticked'; nowMs: number; cause?: unknown };

type StateOf<S extends SessionStateName> = Extract<SessionState, { name: S }>;
type EventOf<E extends SessionEvent['type']> = Extract<SessionEvent, { type: E }>;
type Row<S extends SessionStateName> = {
  readonly [E in SessionEvent['type']]?: (state: StateOf<S>, event: EventOf<E>) => SessionState;
};

const end = {
  refused: (_: unknown, { cause }: EventOf<'refused'>): Ended => ({ name: 'expired', cause }),
  authRefused: (_: unknown, { cause }: EventOf<'authRefused'>): Ended => ({
    name: 'authFailed',
    cause,
  }),
  closeAsked: (_: unknown, { cause }: EventOf<'closeAsked'>): Ended => ({ name: 'closed', cause }),
};

const welcomed = (_: unknown, event: EventOf<'welcomed'>): Connected => ({
  name: 'connected',
  identity: event.identity,
  readOnly: event.readOnly,
  deadlineMs: event.sentMs + event.identity.timeoutMs,
});

/** From the deadline on the server may have dropped us: act as if so. Only a handshake could tell. */
const ticked = <S extends Connected | Suspended>(
  state: S,
  { nowMs, cause }: EventOf<'ticked'>,
): S | Ended => (nowMs >= state.deadlineMs ? { name: 'expired', cause } : state);

/** No cell: the event changes nothing. An empty row: no way out. */
const transitions: { readonly [S in SessionStateName]: Row<S> } = {
  connecting: { ...end, welcomed },
  connected: {
    ...end,
    ticked,
    answered: (state, { sentMs }) => {
      const { name, identity, readOnly } = state;
      const deadlineMs = sentMs + identity.timeoutMs;
      return deadlineMs > state.deadlineMs ? { name, identity, readOnly, deadlineMs } : state;
    },
    lost: ({ identity, deadlineMs }) => ({ name: 'suspended', identity, deadlineMs }),
  },
  suspended: { ...end, ticked, welcomed },
  expired: {},
  authFailed: {},
  closed: {},
};

export function next(state: SessionState, event: SessionEvent): SessionState {
  const row = transitions[state.name] as Row<SessionStateName>;
  const cell = row[event.type] as ((s: SessionState, e: SessionEvent) => SessionState) | undefined;
  return cell ? cell(state, event) : state;
}

/** Looked up, not worked out: it is asked for every call. */
const finalNames: ReadonlySet<string> = new Set(
  Object.entries(transitions)
    .filter(([, row]) => Object.keys(row).length === 0)
    .map(([name]) => name),
);

export function isFinal(state: SessionState): state is Ended {
  return finalNames.has(state.name);
}
