/**
 * Server-sent events from text, as the HTML standard has them, as far as the console uses them.
 *
 *   event: kind     id: 42     data: {…}     (a blank line ends an event; a line with ":" is a sign of life)
 *
 * Pure: text in, in pieces cut anywhere; whole events out. An event without data is none.
 */

export interface ServerEvent {
  readonly kind: string;
  readonly id: string | null;
  readonly data: string;
}

const lineCharsMax = 4 * 1024 * 1024;

/** Takes text as it comes and gives back the events that are whole. */
export class EventParser {
  #rest = '';
  #kind = 'message';
  #id: string | null = null;
  #data: string[] = [];

  feed(text: string): ServerEvent[] {
    const lines = (this.#rest + text).split(/\r?\n/);
    this.#rest = lines.pop()!;
    if (this.#rest.length > lineCharsMax) throw new Error('an event is too long');
    const events: ServerEvent[] = [];
    for (const line of lines) {
      const event = this.#take(line);
      if (event) events.push(event);
    }
    return events;
  }

  #take(line: string): ServerEvent | null {
    if (line === '') {
      const event = { kind: this.#kind, id: this.#id, data: this.#data.join('\n') };
      const isWhole = this.#data.length > 0;
      this.#kind = 'message';
      this.#data = [];
      return isWhole ? event : null;
    }
    const colon = line.indexOf(':');
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') this.#kind = value;
    else if (field === 'id') this.#id = value;
    else if (field === 'data') this.#data.push(value);
    return null;
  }
}
