/**
 * The events of the console, read by fetch() rather than EventSource, because only so is a refusal told
 * from a lost line, a silent line noticed, and the wait before the next try ours to choose.
 *
 * In: bytes of one response after the other. Out: events in order, and whether the stream is up.
 * A stream that says nothing for `silenceMs` counts as down. Tries again for ever, as long as the page is
 * open, with waits that grow to `retryMsMax`; `Last-Event-ID` lets the server go on where it was cut.
 * A page that nobody sees has none: a browser has six connections to one server, for all its tabs together,
 * and each stream keeps one of them. With six streams no tab would be answered anything any more.
 */
import { EventParser, type ServerEvent } from './sse-parser.ts';
import { Refusal } from './transport.ts';

const silenceMs = 40_000;
const retryMsMin = 500;
const retryMsMax = 8_000;

export interface StreamHandlers {
  onEvent(event: ServerEvent): void;
  onUp(): void;
  onDown(error: Error): void;
}

export async function follow(
  path: string,
  handlers: StreamHandlers,
  signal: AbortSignal,
  fromId: string | null,
): Promise<void> {
  let lastId = fromId;
  let waitMs = retryMsMin;
  while (!signal.aborted) {
    await shown(signal);
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), silenceMs);
    const stopHearing = onVisibility(() => document.hidden && silence.abort());
    try {
      const response: Response = await fetch(path, {
        headers: {
          accept: 'text/event-stream',
          ...(lastId === null ? {} : { 'last-event-id': lastId }),
        },
        cache: 'no-store',
        signal: AbortSignal.any([signal, silence.signal]),
      });
      if (!response.ok || !response.body) {
        const why = `the stream answered ${response.status}`;
        throw new Refusal('NO_STREAM', why, response.status);
      }
      handlers.onUp();
      waitMs = retryMsMin;
      const parser = new EventParser();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) throw new Error('the stream ended');
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), silenceMs);
        for (const event of parser.feed(value)) {
          if (event.id !== null) lastId = event.id;
          handlers.onEvent(event);
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      handlers.onDown(error as Error);
    } finally {
      clearTimeout(timer);
      stopHearing();
    }
    await pause(waitMs, signal);
    waitMs = Math.min(waitMs * 2, retryMsMax);
  }
}

/** Until somebody sees the page. */
function shown(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (!document.hidden || signal.aborted) return done();
    const finish = () => {
      if (document.hidden && !signal.aborted) return;
      stopHearing();
      signal.removeEventListener('abort', finish);
      done();
    };
    const stopHearing = onVisibility(finish);
    signal.addEventListener('abort', finish);
  });
}

function pause(waitMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(finish, waitMs);
    const stopHearing = onVisibility(finish);
    function finish(): void {
      clearTimeout(timer);
      stopHearing();
      signal.removeEventListener('abort', finish);
      removeEventListener('online', finish);
      done();
    }
    signal.addEventListener('abort', finish);
    addEventListener('online', finish);
  });
}

function onVisibility(listener: () => void): () => void {
  document.addEventListener('visibilitychange', listener);
  return () => document.removeEventListener('visibilitychange', listener);
}
