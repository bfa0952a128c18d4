import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type DubboUrl,
  decodeDubbo,
  dubboNodeName,
  encodeDubbo,
  formatDubboUrl,
  isDubboMatch,
  parseDubboUrl,
} from './dubbo-url.ts';

test('the encoding is that of java.net.URLEncoder', () => {
  const ascii = String.fromCharCode(...Array.from({ length: 127 }, (_, i) => i + 1));

  // What Java made of it.
  expect(encodeDubbo(`${ascii}é\u00a0漢😀`)).toBe(
    '%01%02%03%04%05%06%07%08%09%0A%0B%0C%0D%0E%0F%10%11%12%13%14%15%16%17%18%19%1A%1B%1C%1D%1E%1F+%21%22%23%24%25%26%27%28%29*%2B%2C-.%2F0123456789%3A%3B%3C%3D%3E%3F%40ABCDEFGHIJKLMNOPQRSTUVWXYZ%5B%5C%5D%5E_%60abcdefghijklmnopqrstuvwxyz%7B%7C%7D%7E%7F%C3%A9%C2%A0%E6%BC%A2%F0%9F%98%80',
  );
});

test('a provider is the node that Dubbo would make', () => {
  const url: DubboUrl = {
    protocol: 'dubbo',
    host: '10.20.153.10',
    port: 20880,
    path: 'com.foo.BarService',
    parameters: { side: 'provider', anyhost: 'true', methods: ' sayHello,sayBye ', 'a.b': '' },
  };

  expect(formatDubboUrl(url)).toBe(
    'dubbo://10.20.153.10:20880/com.foo.BarService?a.b=&anyhost=true&methods=sayHello,sayBye&side=provider',
  );
  expect(dubboNodeName(url)).toBe(
    'dubbo%3A%2F%2F10.20.153.10%3A20880%2Fcom.foo.BarService%3Fa.b%3D%26anyhost%3Dtrue%26methods%3DsayHello%2CsayBye%26side%3Dprovider',
  );
});

test.for<[string, Partial<DubboUrl>]>([
  ['a://h', { protocol: 'a', host: 'h', port: 0, path: '' }],
  ['a://u:p:q@h:1/x/y?k', { username: 'u', password: 'p:q', port: 1, path: 'x/y' }],
  ['a://u@h/x', { username: 'u', host: 'h' }],
  ['a:///x?k=v=w&;&=z=1&__proto__=p', { host: '', path: 'x' }],
  ['a://fe80:0:0:0:894:aeec:f37d:23e1%en0/x', { host: 'fe80:0:0:0:894:aeec:f37d:23e1%en0' }],
  ['a://h/x#fragment?k=v', { path: 'x' }],
])('%s is read', ([text, expected]) => {
  expect(parseDubboUrl(text)).toMatchObject(expected);
});

test('parameters are read as Dubbo reads them', () => {
  const { parameters } = parseDubboUrl('a:///x?k=v=w&;e&=z=1&__proto__=p&default.timeout=5');

  expect(Object.entries(parameters).sort()).toEqual([
    ['__proto__', 'p'],
    ['default.timeout', '5'],
    ['e', ''],
    ['k', 'v=w'],
    ['timeout', '5'],
    ['z', '1'],
  ]);
});

test.for(['', 'no protocol', '://h', 'a://h:port/x', 'a://h:123456'])('%j is refused', (text) => {
  expect(() => parseDubboUrl(text)).toThrow(/^url: /);
});

test('what would come back as something else is not written', () => {
  const url = parseDubboUrl('dubbo://h:1/s');
  const broken = (parameters: Record<string, string>) => () =>
    dubboNodeName({ ...url, parameters });

  expect(broken({ k: 'a&b=c' })).toThrow('several');
  expect(broken({ 'k;': 'a' })).toThrow('several');
  expect(() => dubboNodeName({ ...url, path: 'a?b' })).toThrow(/^url: /);
  expect(broken({ k: '\ud800' })).toThrow('surrogate');
});

test('every URL comes back from its node', () => {
  const word = fc.stringMatching(/^[A-Za-z0-9._-]{1,12}$/);
  const key = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 10 })
    .filter((text) => !/[&;=?#]/.test(text) && !text.startsWith('default.'));
  const value = fc
    .string({ unit: 'grapheme', maxLength: 20 })
    .filter((text) => !/[&;]/.test(text) && !/^[\0-\x20]|[\0-\x20]$/.test(text));
  const urls = fc.record(
    {
      protocol: word,
      username: word,
      password: word,
      host: word,
      port: fc.nat(65_535),
      path: fc.array(word, { maxLength: 3 }).map((parts) => parts.join('/')),
      parameters: fc.dictionary(key, value),
    },
    { requiredKeys: ['protocol', 'host', 'port', 'path', 'parameters'] },
  );
  fc.assert(
    fc.property(urls, (url) => {
      fc.pre(url.password === undefined || url.username !== undefined);
      const name = dubboNodeName(url);

      expect(name).toMatch(/^[A-Za-z0-9.*_+%-]+$/);
      const back = parseDubboUrl(decodeDubbo(name));
      expect({ ...back, parameters: { ...back.parameters } }).toEqual({
        ...url,
        parameters: { ...url.parameters },
      });
      expect(dubboNodeName(back)).toBe(name);
    }),
  );
});

test.for<[string, string, boolean]>([
  ['consumer://c/s', 'dubbo://p/s', true],
  ['consumer://c/s', 'dubbo://p/other', false],
  ['consumer://c/s?interface=i', 'dubbo://p/x?interface=i', true],
  ['consumer://c/s', 'dubbo://p/s?group=g', false],
  ['consumer://c/s?group=*', 'dubbo://p/s?group=g', true],
  ['consumer://c/s?group=f,g', 'dubbo://p/s?group=g', true],
  ['consumer://c/s?version=1', 'dubbo://p/s?version=2', false],
  ['consumer://c/s?version=*', 'dubbo://p/s?version=2', true],
  ['consumer://c/s', 'dubbo://p/s?enabled=false', false],
  ['consumer://c/s?enabled=*', 'dubbo://p/s?enabled=false', true],
  ['consumer://c/s?category=routers', 'dubbo://p/s', false],
  ['consumer://c/s?category=providers,routers', 'route://p/s?category=routers', true],
  ['consumer://c/s?classifier=x', 'dubbo://p/s', false],
])('%s and %s: %s', ([consumer, provider, expected]) => {
  expect(isDubboMatch(parseDubboUrl(consumer), parseDubboUrl(provider))).toBe(expected);
});
