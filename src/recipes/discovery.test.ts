import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ManualClock } from '../support/index.ts';
import {
  formatInstance,
  parseInstance,
  type ServiceInstance,
  serviceInstance,
  serviceTypes,
} from './discovery-instance.ts';
import { DownInstances, strategies } from './discovery-strategy.ts';
import { buildUri, parseUriSpec } from './discovery-uri-spec.ts';

const bytes = (text: string) => Buffer.from(text, 'utf8');

const some = (fields: Partial<ServiceInstance> = {}): ServiceInstance => ({
  ...serviceInstance({ name: 'svc', id: 'id-1', address: '10.0.0.1', port: 8080 }, 1),
  ...fields,
});

// As Curator 5's JsonInstanceSerializer wrote them.
const written = {
  plain:
    '{"name":"svc","id":"id-1","address":"10.0.0.1","port":8080,"sslPort":null,"payload":null,"registrationTimeUTC":1700000000000,"serviceType":"DYNAMIC","uriSpec":{"parts":[{"value":"scheme","variable":true},{"value":"://","variable":false},{"value":"address","variable":true},{"value":":","variable":false},{"value":"port","variable":true},{"value":"/é<x>","variable":false}]}}',
  enabled:
    '{"name":"svc","id":"id-1","address":null,"port":null,"sslPort":443,"payload":null,"registrationTimeUTC":0,"serviceType":"PERMANENT","uriSpec":null,"enabled":false}',
  list: '{"name":"svc","id":"id-1","address":"10.0.0.1","port":8080,"sslPort":null,"payload":["java.util.ArrayList",[1]],"registrationTimeUTC":1,"serviceType":"STATIC","uriSpec":null}',
  bean: '{"name":"svc","id":"id-1","address":"10.0.0.1","port":8080,"sslPort":null,"payload":{"@class":"com.example.Load","cpu":3,"zone":"a"},"registrationTimeUTC":1,"serviceType":"DYNAMIC_SEQUENTIAL","uriSpec":null}',
};

test('what Curator wrote is read, and written again byte for byte', () => {
  for (const [name, text] of Object.entries(written)) {
    const instance = parseInstance(bytes(text));

    expect(formatInstance(instance, { writeEnabled: name === 'enabled' })).toBe(text);
  }
  expect(parseInstance(bytes(written.list)).payload).toEqual([1]);
  expect(parseInstance(bytes(written.enabled)).enabled).toBe(false);
  expect(parseInstance(bytes(written.plain)).enabled).toBe(true);
});

test('a long that Java marks as one is a number', () => {
  const text = '{"name":"a","id":"b","payload":["java.lang.Long",7]}';

  expect(parseInstance(bytes(text)).payload).toBe(7);
});

test('what is missing has the defaults of Curator, and what is unknown is ignored', () => {
  const text = '{"name":"a","id":"b","port":"80","payload":{"x":1},"extra":2}';

  expect(parseInstance(bytes(text))).toEqual({
    ...{ name: 'a', id: 'b', address: null, port: 80, sslPort: null, payload: { x: 1 } },
    ...{ registrationTimeUTC: 0, serviceType: 'DYNAMIC', uriSpec: null, enabled: true },
  });
});

test.for([
  ['', 'there is no data'],
  ['{', 'not JSON'],
  ['[]', 'an object is wanted'],
  ['7', 'an object is wanted'],
  ['{"name":7}', 'name: text is wanted'],
  ['{"port":1.5}', 'port: an integer is wanted'],
  ['{"serviceType":"NEW"}', 'serviceType: one of DYNAMIC'],
  ['{"uriSpec":{"parts":7}}', 'uriSpec.parts: a list'],
  ['{"uriSpec":{"parts":[{"value":7}]}}', 'uriSpec.parts: a value'],
  ['{"enabled":"yes"}', 'enabled: true or false'],
  ['{"payload":{"__proto__":{"isAdmin":true}}}', '__proto__'],
  [`{"payload":${'['.repeat(500)}${']'.repeat(500)}}`, 'nested deeper'],
])('%s is refused: %s', ([text, why]) => {
  expect(() => parseInstance(bytes(text!))).toThrow(why!);
});

test('bytes that are not UTF-8 are refused', () => {
  expect(() => parseInstance(Buffer.from([0x22, 0xff, 0x22]))).toThrow('not JSON');
});

test('every instance comes back as it was', () => {
  const port = fc.option(fc.integer({ min: 0, max: 65_535 }));
  const json = fc.jsonValue().filter((value) => !JSON.stringify(value).includes('__proto__'));
  const instances = fc.record({
    name: fc.stringMatching(/^[a-z0-9.-]{3,20}$/),
    id: fc.uuid(),
    address: fc.option(fc.ipV4()),
    port,
    sslPort: port,
    payload: json,
    registrationTimeUTC: fc.maxSafeNat(),
    serviceType: fc.constantFrom(...serviceTypes),
    uriSpec: fc.option(
      fc.record({ parts: fc.array(fc.record({ value: fc.string(), variable: fc.boolean() })) }),
    ),
    enabled: fc.boolean(),
  });
  fc.assert(
    fc.property(instances, (instance) => {
      const text = formatInstance(instance, { writeEnabled: true });

      // JSON has no minus zero.
      expect(parseInstance(bytes(text))).toEqual(JSON.parse(JSON.stringify(instance)));
    }),
  );
});

test('an instance is filled in, and refused where it cannot be', () => {
  const instance = serviceInstance({ name: 'svc', uriSpec: '{scheme}://x' }, 5);

  expect(instance).toMatchObject({ registrationTimeUTC: 5, serviceType: 'DYNAMIC', enabled: true });
  expect(instance.id).toMatch(/^[0-9a-f-]{36}$/);
  expect(() => serviceInstance({ name: 'a/b' })).toThrow(/^name: /);
  expect(() => serviceInstance({ name: '' })).toThrow(/^name: /);
  expect(() => serviceInstance({ name: 'a', id: '..' })).toThrow(/^id: /);
  expect(() => serviceInstance({ name: 'a', port: 70_000 })).toThrow(/^port: /);
  expect(() => serviceInstance({ name: 'a', serviceType: 'X' as never })).toThrow(/^serviceType: /);
});

test('a pattern is filled in from the instance, and from what is handed in before it', () => {
  const spec = parseUriSpec(
    '{scheme}://{ address }:{port}{ssl-port}/{name}/{id}/{who}{nobody}{[}{]}',
  );
  const instance = some({ serviceType: 'STATIC' });

  expect(buildUri(spec, instance, { who: 'me' })).toBe('http://10.0.0.1:8080/svc/id-1/me{}');
  expect(buildUri(spec, some({ sslPort: 443, port: null }), { name: 'x' })).toBe(
    'https://10.0.0.1:443/x/id-1/{}',
  );
  expect(buildUri(parseUriSpec('{service-type} {registration-time-utc}'), instance)).toBe(
    'static 1',
  );
  for (const bad of ['{a{b}}', '}', '{a']) expect(() => parseUriSpec(bad)).toThrow(/^uriSpec: /);
});

const three = ['a', 'b', 'c'].map((id) => some({ id }));
const ids = (count: number, pick: () => ServiceInstance | null) =>
  Array.from({ length: count }, () => pick()?.id ?? '-').join('');

test('round robin takes one after the other', () => {
  const strategy = strategies.roundRobin();

  expect(ids(7, () => strategy.pick(three))).toBe('abcabca');
});

test('random takes any', () => {
  const chances = [0, 0.34, 0.99];
  const strategy = strategies.random(() => chances.shift()!);

  expect(ids(3, () => strategy.pick(three))).toBe('abc');
});

test('sticky stays with one until it goes or is another', () => {
  const strategy = strategies.sticky(strategies.roundRobin());

  expect(ids(3, () => strategy.pick(three))).toBe('aaa');
  expect(ids(2, () => strategy.pick(three.slice(1)))).toBe('cc');
  const restarted = three.map((one) => ({ ...one, registrationTimeUTC: 9 }));
  expect(strategy.pick(restarted)?.registrationTimeUTC).toBe(9);
});

test('weighted takes in proportion, and never one of weight 0', () => {
  const weights: Record<string, number> = { a: 1, b: 0, c: 3 };
  let chance = 0;
  const strategy = strategies.weighted(
    ({ id }) => weights[id]!,
    () => chance,
  );
  const picked = Array.from({ length: 100 }, (_, i) => {
    chance = i / 100;
    return strategy.pick(three)!.id;
  });

  expect(picked.filter((id) => id === 'a')).toHaveLength(25);
  expect(picked.filter((id) => id === 'c')).toHaveLength(75);
  expect(strategies.weighted(() => 0).pick(three)).toBeNull();
  expect(strategies.weighted(() => Number.NaN).pick(three)).toBeNull();
});

test('two errors within 30 s and an instance is down, until 30 s after the first', () => {
  const clock = new ManualClock();
  const down = new DownInstances({ clock });
  const [a, b] = three as [ServiceInstance, ServiceInstance];

  down.noteError(a);
  expect(down.isDown(a)).toBe(false);
  clock.advance(29_000);
  down.noteError(a);
  expect([down.isDown(a), down.isDown(b)]).toEqual([true, false]);
  expect(down.isDown({ ...a, registrationTimeUTC: 99 })).toBe(false);
  clock.advance(1_000);
  expect(down.isDown(a)).toBe(false);
});
