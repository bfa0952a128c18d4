/**
 * JSON that others wrote, read with care.
 *
 * In: bytes of a node or a file. Out: a value, or a JsonError that says what is wrong and where. A key
 * `__proto__` is refused: it means nothing in JSON, and in JavaScript, once merged into another
 * object, it changes what all objects are. So is what is nested deeper than any reader's recursion
 * should go. Bytes that are not UTF-8 are refused, and not mended in silence.
 */

export class JsonError extends Error {
  override readonly name = 'JsonError';
  readonly code = 'BAD_JSON';
}

/** Deeper than any configuration is, and far from where a recursive reader runs out of stack. */
const depthMax = 100;

const utf8 = new TextDecoder('utf-8', { fatal: true });

export function parseJson(bytes: Uint8Array | null, what: string): unknown {
  if (bytes === null || bytes.length === 0) throw new JsonError(`${what}: there is no data`);
  let value: unknown;
  try {
    value = JSON.parse(utf8.decode(bytes));
  } catch (cause) {
    throw new JsonError(`${what}: not JSON: ${(cause as Error).message}`, { cause });
  }
  checkJson(value, what);
  return value;
}

/** As text; what has no place in JSON, or would not come back, is refused. */
export function formatJson(value: unknown, what: string): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    throw new JsonError(`${what}: cannot be JSON: ${(cause as Error).message}`, { cause });
  }
  if (text === undefined) throw new JsonError(`${what}: a ${typeof value} cannot be JSON`);
  checkJson(JSON.parse(text), what);
  return text;
}

/** Without recursion: what is nested a million deep is refused, and does not end the process. */
function checkJson(value: unknown, what: string): void {
  const open: { readonly value: unknown; readonly depth: number }[] = [{ value, depth: 0 }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next.value !== 'object' || next.value === null) continue;
    const depth = next.depth + 1;
    if (depth > depthMax) throw new JsonError(`${what}: nested deeper than ${depthMax}`);
    if (Object.hasOwn(next.value, '__proto__')) {
      throw new JsonError(`${what}: a key __proto__ is refused`);
    }
    for (const inner of Object.values(next.value)) open.push({ value: inner, depth });
  }
}

/** Plain objects and lists. Anything else is a class of the schema's own, which may need to change. */
function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === Array.prototype || prototype === null;
}

/**
 * A copy of plain objects and lists, through and through: what becomes of it does not touch the original,
 * which belongs to the caller. Everything else is the same in both.
 */
export function copied<T>(value: T): T {
  const copies = new Map<object, object>();
  const open: [from: object, to: object][] = [];
  const copyOf = (one: unknown): unknown => {
    if (!isPlain(one)) return one;
    let copy = copies.get(one);
    if (copy === undefined) {
      copy = Array.isArray(one) ? [] : (Object.create(Object.getPrototypeOf(one)) as object);
      copies.set(one, copy);
      open.push([one, copy]);
    }
    return copy;
  };
  const result = copyOf(value);
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [from, to] = next;
    for (const [key, inner] of Object.entries(from)) {
      // Defined, not assigned: a key may be `__proto__`.
      const property = { enumerable: true, writable: true, configurable: true };
      Object.defineProperty(to, key, { ...property, value: copyOf(inner) });
    }
  }
  return result as T;
}

/** Whoever reads a value shares it with all others who do: nobody may change it. */
export function frozen<T>(value: T): T {
  const open: unknown[] = [value];
  for (let next = open.pop(); next !== undefined || open.length > 0; next = open.pop()) {
    if (!isPlain(next) || Object.isFrozen(next)) continue;
    Object.freeze(next);
    for (const inner of Object.values(next)) open.push(inner);
  }
  return value;
}
