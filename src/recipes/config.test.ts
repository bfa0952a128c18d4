import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ConfigSaver, readConfigFile, writeConfigFile } from './config-file.ts';
import { copied, formatJson, frozen, parseJson } from './config-json.ts';
import { checkOf } from './config-schema.ts';

const bytes = (text: string) => Buffer.from(text, 'utf8');

test('JSON comes back as it went, unless it names __proto__', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const isHostile = JSON.stringify(value).includes('"__proto__":');
      if (isHostile) expect(() => formatJson(value, 'x')).toThrow('__proto__');
      else {
        expect(parseJson(bytes(formatJson(value, 'x')), 'x')).toEqual(
          JSON.parse(JSON.stringify(value)),
        );
      }
    }),
  );
});

test('whatever the bytes are, they are read or refused, and no prototype changes', () => {
  const evil = fc.constantFrom(
    '{"__proto__":{"polluted":1}}',
    '{"a":[{"__proto__":null}]}',
    '{"constructor":{"prototype":{"polluted":1}}}',
    `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`,
    `[${'1,'.repeat(300_000)}1]`,
    '"\\ud800"',
    '1e999',
  );
  fc.assert(
    fc.property(fc.oneof(evil.map(bytes), fc.uint8Array(), fc.string().map(bytes)), (input) => {
      try {
        frozen(parseJson(input, 'x'));
      } catch (error) {
        expect(error).toMatchObject({ code: 'BAD_JSON' });
      }
      expect(({} as { polluted?: number }).polluted).toBeUndefined();
    }),
  );
  expect(() => parseJson(bytes('{"__proto__":1}'), 'x')).toThrow('__proto__');
  expect(() => parseJson(null, 'x')).toThrow('there is no data');
});

test.for([undefined, () => {}, Symbol('s'), 1n])('%s has no place in JSON', (value) => {
  expect(() => formatJson(value, 'x')).toThrow(/^x: /);
});

test('a value is frozen through and through, and a class of its own is left alone', () => {
  const own = new Map();
  const value = frozen({ list: [{ deep: 1 }], own });

  expect(() => {
    value.list[0]!.deep = 2;
  }).toThrow(TypeError);
  expect(Object.isFrozen(own)).toBe(false);
});

test('a copy shares nothing that is plain, keeps what is not, and bears circles and any key', () => {
  const own = new Map();
  const circle: Record<string, unknown> = { list: [{ deep: 1 }, [2]], own };
  circle.self = circle;
  Object.defineProperty(circle, '__proto__', { value: { a: 1 }, enumerable: true });
  const bare = Object.assign(Object.create(null), { x: [] });

  const copy = copied(circle);
  frozen(copy);

  expect(copy.list).toEqual([{ deep: 1 }, [2]]);
  expect(copy.list).not.toBe(circle.list);
  expect(copy.own).toBe(own);
  expect(copy.self).toBe(copy);
  expect(Object.getOwnPropertyDescriptor(copy, '__proto__')!.value).toEqual({ a: 1 });
  expect(Object.getPrototypeOf(copied(bare))).toBeNull();
  expect([circle, circle.list, bare].map((one) => Object.isFrozen(one))).toEqual(
    Array(3).fill(false),
  );
});

test('a schema is a function, an object with parse, or a Standard Schema', () => {
  const number = (value: unknown) => {
    if (typeof value !== 'number') throw new Error('a number is wanted');
    return value;
  };
  const standard = {
    '~standard': {
      validate: (value: unknown) =>
        typeof value === 'number'
          ? { value }
          : { issues: [{ message: 'a number is wanted', path: ['a', { key: 'b' }] }] },
    },
  };

  for (const schema of [number, { parse: number }, standard]) {
    const check = checkOf<number>(schema);
    expect(check(7)).toBe(7);
    expect(() => check('7')).toThrow(expect.objectContaining({ code: 'SCHEMA_MISMATCH' }));
  }
  expect(() => checkOf(standard)('x')).toThrow('a.b: a number is wanted');
  expect(() => checkOf(async () => 1)(1)).toThrow('promise');
  expect(() => checkOf(7 as never)).toThrow(/^schema: /);
  expect(() => checkOf(null as never)).toThrow(/^schema: /);
});

async function directory() {
  const path = await mkdtemp(join(tmpdir(), 'drover-config-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) };
}

const nodes = new Map([
  ['db', { version: 0x1_0000_0007n, raw: { host: 'x' } }],
  ['missing', { version: null, raw: undefined }],
]);

test('the file is written whole, for its owner alone, and read back', async () => {
  await using dir = await directory();
  const file = join(dir.path, 'config.json');

  await writeConfigFile(file, '/config', { savedMs: 5, nodes });
  await writeConfigFile(file, '/config', { savedMs: 6, nodes });
  const saved = await readConfigFile(file, '/config');

  expect(saved).toEqual({ savedMs: 6, nodes: new Map([['db', nodes.get('db')]]) });
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readdir(dir.path)).toEqual(['config.json']);
});

test('no file is null; one that is torn, foreign or of another path is refused', async () => {
  await using dir = await directory();
  const file = join(dir.path, 'config.json');
  expect(await readConfigFile(file, '/config')).toBeNull();
  await writeConfigFile(file, '/config', { savedMs: 5, nodes });

  await expect(readConfigFile(file, '/other')).rejects.toThrow('/config, not of /other');
  const text = await readFile(file, 'utf8');
  for (let length = 0; length < text.length; length++) {
    await writeFile(file, text.slice(0, length));
    await expect(readConfigFile(file, '/config')).rejects.toMatchObject({ code: 'BAD_JSON' });
  }
  for (const foreign of ['{}', '[]', 'null', '{"format":2,"path":"/config","nodes":{}}']) {
    await writeFile(file, foreign);
    await expect(readConfigFile(file, '/config')).rejects.toThrow('not a file that');
  }
});

test('a file that cannot be written is told of, and the old one stays', async () => {
  await using dir = await directory();
  const failures: Error[] = [];
  const saver = new ConfigSaver(join(dir.path, 'no', 'such', 'file'), '/c', (error) =>
    failures.push(error),
  );

  saver.save({ savedMs: 1, nodes });
  await saver.settled();

  expect(failures).toMatchObject([{ code: 'ENOENT' }]);
});

test('what is saved in the moment in which the save before it ends is saved too', async () => {
  await using dir = await directory();
  let failures = 0;
  const saver: ConfigSaver = new ConfigSaver(join(dir.path, 'no', 'such', 'file'), '/c', () => {
    failures += 1;
    if (failures === 1) queueMicrotask(() => saver.save({ savedMs: 2, nodes }));
  });

  saver.save({ savedMs: 1, nodes });
  await saver.settled();
  await saver.settled();

  expect(failures).toBe(2);
});
