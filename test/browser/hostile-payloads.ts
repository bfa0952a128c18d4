/**
 * Names, data and ids that want to be more than text, made out of pieces, and a tree full of them.
 *
 * Each payload carries its number as ~n~, so that a test can tell which of them a page has shown.
 */
import { request } from 'node:http';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import type { Client } from '../../src/client/index.ts';
import type { World } from './world.ts';

export const run = 'globalThis.owned=1';
const pieces = [
  `<img src=x onerror=${run}>`,
  `<script>${run}</script>`,
  `"><svg/onload=${run}>`,
  `'><iframe srcdoc='<script>parent.${run}</script>'>`,
  `javascript:${run}//`,
  `data:text/html,<script>${run}</script>`,
  `</title></textarea></style></script><b onmouseover=${run}>`,
  `<math><mtext></form><form><mglyph><style></math><img src onerror=${run}>`,
  `<a href="javascript:${run}">x</a>`,
  `<style>@import'//evil.example/x'</style>`,
  `<link rel=stylesheet href=//evil.example/x.css>`,
  `<base href=//evil.example/>`,
  `<meta http-equiv=refresh content=0;url=//evil.example>`,
  `{{constructor.constructor('${run}')()}}`,
  `\${${run}}`,
  `");${run};//`,
  `\\u003cscript\\u003e`,
  '&lt;script&gt;&#60;img&#62;',
  '__proto__',
  'constructor',
  'toString',
  '%3Cscript%3E%00%2e%2e%2f',
  '\u202egnp.exe\u2066',
  '\u200b\ufeff\u2028',
  '?q=1&path=/#token=x',
  'x'.repeat(300),
];
const inData = [
  '\u0000\u001b[31m\u001b]0;title\u0007',
  '\r\nset-cookie: x=1\r\n',
  '\ud800',
  ']]>',
  '\u{1f600}\u0301\u0301',
];

const nameOf = fc
  .array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 3 })
  // A slash would make two nodes of it, and these are the characters that a server refuses.
  .map((parts) => parts.join('').replaceAll('/', '\u2215'));
const dataOf = fc.oneof(
  fc.array(fc.constantFrom(...pieces, ...inData), { maxLength: 5 }).map((parts) => parts.join('')),
  fc
    .tuple(fc.constantFrom(...pieces), fc.constantFrom(...pieces, ...inData))
    .map(([key, value]) => `{"__proto__":1,${JSON.stringify(key)}:[${JSON.stringify(value)}]}`),
);

export interface Payload {
  readonly name: string;
  readonly data: string;
}

export function payloadsOf(count: number, seed: number): Payload[] {
  return fc
    .sample(fc.tuple(nameOf, dataOf), { numRuns: count, seed })
    .map(([name, data], at) => ({ name: `~${at}~ ${name}`, data: `~${at}~ ${data}` }));
}

/** Rows of one folder, entries of one ACL, payloads in the data of one node. */
export const folderRows = 200;
export const packed = 100;
const plantedAtOnce = 50;

export interface Planted {
  /** Of each payload, the node with its name and data. */
  readonly paths: readonly string[];
  readonly folders: readonly string[];
  readonly packs: readonly string[];
  readonly locks: readonly string[];
}

/** Every payload as a node, a topic, a group, a lock and a watch; and by the hundred in the data and ACL of one. */
export async function plant({ client }: World, payloads: readonly Payload[]): Promise<Planted> {
  const folders = slices(payloads, folderRows).map((_, at) => `/hostile/f${at}`);
  const locks = folders.map((_, at) => `/locks/r${at}`);
  const bases = ['/hostile', '/packs', '/brokers/topics', '/config/topics', '/brokers/ids'];
  for (const path of [...bases, '/consumers', '/admin', '/made', ...folders, ...locks])
    await client.create(path, '', { parents: true });
  const placed = (places: readonly string[], at: number) =>
    `${places[Math.floor(at / folderRows)]}/${payloads[at]!.name}`;
  const paths = payloads.map((_, at) => placed(folders, at));
  for (const some of slices([...payloads.entries()], plantedAtOnce)) {
    await Promise.all(
      some.map(([at, one]) => plantOne(client, one, at, paths[at]!, placed(locks, at))),
    );
  }
  const packs = slices(payloads, packed).map((_, at) => `/packs/${at}`);
  for (const [at, some] of slices(payloads, packed).entries()) {
    const texts = some.map(({ data }) => data);
    const json = JSON.stringify({ texts, byName: Object.fromEntries(some.map(pair)) });
    await client.create(packs[at]!, '', {
      acl: [
        { perms: 31, id: { scheme: 'world', id: 'anyone' } },
        ...some.map(({ name }) => ({ perms: 1, id: { scheme: 'digest', id: digestId(name) } })),
      ],
    });
    const text = Buffer.from(texts.join('\n').replaceAll('\u0000', ''));
    await client.create(`${packs[at]}/text`, text);
    await client.create(`${packs[at]}/json`, Buffer.from(json));
    await client.create(`${packs[at]}/gzip`, gzipSync(json));
  }
  return { paths, folders, packs, locks };
}

/** A digest's id has one colon. */
const digestId = (name: string) => `${name.replaceAll(':', '\u02d0')}:hash`;
const pair = ({ name, data }: Payload) => [name, data] as const;

async function plantOne(
  client: Client,
  { name, data: text }: Payload,
  at: number,
  path: string,
  lock: string,
): Promise<void> {
  // Some are no UTF-8 at all.
  const rest = at % 7 === 0 ? [0xed, 0xa0, 0x80, 0xff] : [];
  const data = Buffer.concat([Buffer.from(text), Buffer.from(rest)]);
  const put = (where: string, bytes: string | Buffer = data) =>
    ({ op: 'create', path: where, data: bytes }) as const;
  await client.multi([
    put(path),
    put(`/consumers/${name}`),
    ...['offsets', 'ids', 'owners'].map((one) => put(`/consumers/${name}/${one}`)),
    put(`/consumers/${name}/offsets/${name}`),
    put(`/consumers/${name}/offsets/${name}/0`, String(at)),
    put(`/consumers/${name}/ids/${name}`),
    put(`/consumers/${name}/owners/${name}`),
    put(`/consumers/${name}/owners/${name}/0`),
    put(`/brokers/topics/${name}`, '{"version":1,"partitions":{"0":[1]}}'),
    put(`/brokers/topics/${name}/partitions`),
    put(`/brokers/topics/${name}/partitions/0`),
    put(`/brokers/topics/${name}/partitions/0/state`),
    put(`/config/topics/${name}`),
    put(lock),
    { ...put(`${lock}/lock-0000000000`), mode: 'ephemeral' },
    ...(at < 40 ? [{ ...put(`/brokers/ids/${at}`), mode: 'ephemeral' } as const] : []),
  ]);
  await client.get(path, { watch: () => {} });
}

export function slices<T>(list: readonly T[], size: number): T[][] {
  const found: T[][] = [];
  for (let at = 0; at < list.length; at += size) found.push(list.slice(at, at + size));
  return found;
}

/** Changes through the console itself, one for each payload, so that its audit tells of them all. */
export async function changeAll(url: string, payloads: readonly Payload[]): Promise<void> {
  const answer = await fetch(new URL('/api/session', url));
  const { csrf } = (await answer.json()) as { csrf: string };
  for (const some of slices(payloads, 20)) {
    await Promise.all(
      some.map(({ name, data }) =>
        post(new URL('/api/node/create', url), csrf, {
          path: `/made/${name}`,
          data: Buffer.from(data).toString('base64'),
          mode: 'persistent',
          parents: false,
        }),
      ),
    );
  }
}

function post(url: URL, token: string, body: unknown): Promise<void> {
  const headers = {
    'content-type': 'application/json',
    'sec-fetch-site': 'same-origin',
    'x-drover-token': token,
    origin: url.origin,
  };
  return new Promise((resolve, reject) => {
    const asking = request(url, { method: 'POST', headers }, (response) => {
      response.resume();
      response.on('error', reject);
      response.on('end', () =>
        response.statusCode === 200
          ? resolve()
          : reject(new Error(`${url} answered ${response.statusCode}`)),
      );
    });
    asking.on('error', reject);
    asking.end(JSON.stringify(body));
  });
}
