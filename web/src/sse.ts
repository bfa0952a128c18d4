/**
 * The events of the console, read by fetch() rather than EventSource, because only so is a refusal told
 * from a lost line, a silent line noticed, and the wait before the next try ours to choose.
 *
 * In: bytes of one response after the other. Out: events in order, and whether the stream is up.
 * A stream that says nothing for `silenceMs` counts as down. Tries again for ever, as long as the page is
 * open, with waits that grow to `retryMsMax`; `Last-Event-ID` lets the server go on where it was cut.
 */
import { EventParser, type ServerEvent } from './sse-parser.ts';

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
): Promise<void> {
  let lastId = null as string | null;
  let waitMs = retryMsMin;
  while (!signal.aborted) {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), silenceMs);
    try {
      const response: Response = await fetch(path, {
        headers: {
          accept: 'text/event-stream',
          ...(lastId === null ? {} : { 'last-event-id': lastId }),
        },
        cache: 'no-store',
        signal: AbortSignal.any([signal, silence.signal]),
      });
      if (!response.ok || !response.body) throw new Error(`the stream answered ${response.status}`);
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
    }
    await pause(waitMs, signal);
    waitMs = Math.min(waitMs * 2, retryMsMax);
  }
}

function pause(waitMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(finish, waitMs);
    function finish(): void {
      clearTimeout(timer);
      signal.removeEventListener('abort', finish);
      removeEventListener('online', finish);
      done();
    }
    signal.addEventListener('abort', finish);
    addEventListener('online', finish);
  });
}
