/** Numbers, times and sizes as people read them. Pure; what comes in as null goes out as a dash. */

const dash = '–';

export function count(value: number | bigint | null | undefined): string {
  return value === null || value === undefined
    ? dash
    : value.toLocaleString('en-GB').replaceAll(',', '\u202f');
}

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return dash;
  if (value < 1024) return `${value} B`;
  const units = ['KB', 'MB', 'GB', 'TB'];
  let size = value / 1024;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

export function ms(value: number | null | undefined): string {
  if (value === null || value === undefined) return dash;
  if (value === 0) return '0 ms';
  if (value < 1) return `${value.toFixed(2)} ms`;
  if (value < 10) return `${value.toFixed(1)} ms`;
  if (value < 1000) return `${Math.round(value)} ms`;
  return duration(value);
}

export function duration(value: number | null | undefined): string {
  if (value === null || value === undefined) return dash;
  const seconds = Math.abs(value) / 1000;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return and(`${minutes} min`, Math.floor(seconds % 60), 's');
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return and(`${hours} h`, minutes % 60, 'min');
  return and(`${Math.floor(hours / 24)} d`, hours % 24, 'h');
}

const and = (whole: string, rest: number, unit: string) =>
  rest === 0 ? whole : `${whole} ${rest} ${unit}`;

/** "12 s ago"; the future, which clocks of two machines can bring about, is "now". */
export function ago(timeMs: number | null | undefined, nowMs: number): string {
  if (timeMs === null || timeMs === undefined || timeMs <= 0) return dash;
  const past = nowMs - timeMs;
  return past < 1000 ? 'now' : `${duration(past)} ago`;
}

/** Local date and time to the second, without the guesswork of locales. */
export function time(timeMs: number | null | undefined): string {
  if (timeMs === null || timeMs === undefined || !Number.isFinite(timeMs)) return dash;
  const date = new Date(timeMs);
  if (Number.isNaN(date.getTime())) return dash;
  const two = (value: number) => String(value).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(timeMs)}`;
}

export function clock(timeMs: number | null | undefined): string {
  if (timeMs === null || timeMs === undefined) return dash;
  const date = new Date(timeMs);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function rate(value: number | null | undefined): string {
  if (value === null || value === undefined) return dash;
  if (value === 0) return '0/s';
  if (value >= 10_000) return `${Math.round(value / 1000)} k/s`;
  return `${value >= 100 ? Math.round(value) : value.toFixed(1)}/s`;
}

export function percent(part: number | null | undefined): string {
  return part === null || part === undefined ? dash : `${Math.round(part * 100)} %`;
}

export function plural(many: number, word: string, words = `${word}s`): string {
  return `${count(many)} ${many === 1 ? word : words}`;
}

/** Characters that change how a line reads (controls, bidi marks) shown as what they are. */
export function visible(text: string): string {
  return text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
    /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

export function joinPath(parent: string, name: string): string {
  return parent === '/' ? `/${name}` : `${parent}/${name}`;
}

export function parentOf(path: string): string {
  const at = path.lastIndexOf('/');
  return at <= 0 ? '/' : path.slice(0, at);
}

export function nameOf(path: string): string {
  return path === '/' ? '/' : path.slice(path.lastIndexOf('/') + 1);
}
