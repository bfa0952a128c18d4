/** What a server refuses in a moment of overload, or while a session moves: it may be asked again, a little later. */
export const refusals = ['THROTTLED_OP', 'REQUEST_TIMEOUT', 'SESSION_MOVED'] as const;
