/** IP addresses in ACLs: `192.168.0.1`, `10.0.0.0/8`, `fe80::/10` (IPAuthenticationProvider). */

export function addressBytes(text: string): Uint8Array | null {
  if (text.includes(':')) return v6Bytes(text);
  return text.includes('.') ? v4Bytes(text) : null;
}

/** Java's Integer.parseInt takes a sign; `+1` is therefore a legal part there, and here. */
function javaInt(text: string, radix: 10 | 16): number | null {
  const digits = radix === 10 ? /^[+-]?[0-9]+$/ : /^[+-]?[0-9a-fA-F]+$/;
  return digits.test(text) ? Number.parseInt(text, radix) : null;
}

function v4Bytes(text: string): Uint8Array | null {
  const parts = text.split('.');
  if (parts.length !== 4) return null;
  const numbers = parts.map((part) => javaInt(part, 10));
  if (numbers.some((number) => number === null || number < 0 || number > 255)) return null;
  return Uint8Array.from(numbers as number[]);
}

function v6Bytes(text: string): Uint8Array | null {
  const halves = text.split('::');
  if (halves.length > 2) return null;
  const segments = halves.map((half) => (half === '' ? [] : half.split(':')));
  const [front = [], back = []] = segments;
  if (halves.length === 1 ? front.length !== 8 : front.length + back.length >= 8) return null;
  const bytes = new Uint8Array(16);
  const put = (at: number, list: readonly string[]): boolean =>
    list.every((segment, i) => {
      const value = segment.length > 4 ? null : javaInt(segment, 16);
      if (value === null) return false;
      bytes[at + 2 * i] = value >> 8;
      bytes[at + 2 * i + 1] = value;
      return true;
    });
  return put(0, front) && put(16 - 2 * back.length, back) ? bytes : null;
}

function range(expression: string): { bytes: Uint8Array; bits: number } | null {
  const slash = expression.indexOf('/');
  const bytes = addressBytes(slash === -1 ? expression : expression.slice(0, slash));
  if (bytes === null) return null;
  const bits = slash === -1 ? bytes.length * 8 : javaInt(expression.slice(slash + 1), 10);
  return bits === null || bits < 0 || bits > bytes.length * 8 ? null : { bytes, bits };
}

export function isAddressRange(expression: string): boolean {
  return range(expression) !== null;
}

export function addressMatches(address: string, expression: string): boolean {
  const wanted = range(expression);
  const bytes = addressBytes(address);
  if (wanted === null || bytes === null || bytes.length !== wanted.bytes.length) return false;
  return bytes.every((byte, i) => {
    const bits = Math.min(8, Math.max(0, wanted.bits - 8 * i));
    const mask = (0xff00 >> bits) & 0xff;
    return (byte & mask) === (wanted.bytes[i]! & mask);
  });
}

/** Whether only this machine can reach it. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);
}
