/**
 * What can be traced: `tracing:drover:connect:*` and `tracing:drover:request:*` of Node's
 * diagnostics_channel. Nobody listening costs one look at a flag.
 */

import { type TracingChannel, tracingChannel } from 'node:diagnostics_channel';

export interface RequestTrace {
  readonly op: string;
  readonly path: string | undefined;
  readonly server: string | undefined;
  readonly sessionId: bigint | undefined;
}

/** Types for Node 20 do not know it yet; the runtime does. */
type Channel = TracingChannel<unknown, object> & { readonly hasSubscribers: boolean };

const request = tracingChannel<unknown, object>('drover:request') as Channel;
const connect = tracingChannel<unknown, object>('drover:connect') as Channel;

/** Whether anybody listens to requests. Asked first, so that the context is made for listeners alone. */
export function isTraced(): boolean {
  return request.hasSubscribers;
}

export function traceRequest<T>(context: RequestTrace, work: () => Promise<T>): Promise<T> {
  return request.tracePromise(work, context) as Promise<T>;
}

export function traceConnect<T>(context: object, work: () => Promise<T>): Promise<T> {
  return connect.hasSubscribers ? (connect.tracePromise(work, context) as Promise<T>) : work();
}
