import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { subjectName, subjectOf } from './certificate-subject.ts';

const cn = '550403';
const ou = '55040b';
const email = '2a864886f70d010901';
const utf8 = 0x0c;

const piece = (tag: number, content: Buffer) =>
  content.length < 0x80
    ? Buffer.concat([Buffer.from([tag, content.length]), content])
    : Buffer.concat([Buffer.from([tag, 0x82, content.length >> 8, content.length]), content]);

type Attribute = readonly [type: string, value: string | Buffer, tag?: number];

/** Each entry with one attribute or more, the first first. */
function name(...entries: readonly (readonly Attribute[])[]): Buffer {
  const attribute = ([type, value, tag = utf8]: Attribute) =>
    piece(
      0x30,
      Buffer.concat([piece(6, Buffer.from(type, 'hex')), piece(tag, Buffer.from(value as string))]),
    );
  return Buffer.concat(
    entries.map((entry) => piece(0x31, Buffer.concat(entry.map((each) => attribute(each))))),
  );
}

test('the subject of a certificate is found in it', () => {
  const file = resolve(import.meta.dirname, '../../test/certificates/client.cert.pem');

  expect(subjectOf(new X509Certificate(readFileSync(file)).raw)).toBe('CN=drover-client');
});

// As Java 25 prints them, but for the last, which it reads as text.
test.each([
  [[[[cn, 'admin,OU=ops']]], 'CN=admin\\,OU\\=ops'],
  [[[[cn, 'a+b=c;d<e>f"g#h\\i']]], 'CN=a\\+b\\=c\\;d\\<e\\>f\\"g\\#h\\\\i'],
  [[[[cn, '  lead and trail ']]], 'CN=\\ \\ lead and trail\\ '],
  [[[[cn, '  ']]], 'CN=\\ \\ '],
  [[[[cn, 'Jürgen\tb\nc']]], 'CN=Jürgen\tb\nc'],
  [[[[cn, 'x'.repeat(300)]]], `CN=${'x'.repeat(300)}`],
  [[[['550406', 'DE', 0x13]], [['55040a', 'Foo']], [[cn, 'ann']]], 'CN=ann,O=Foo,C=DE'],
  [
    [
      [
        [ou, 'z'],
        [cn, 'ann'],
        [email, 'a@b', 0x16],
      ],
      [['55040a', 'q']],
    ],
    'O=q,OU=z+CN=ann+1.2.840.113549.1.9.1=#1603614062',
  ],
  [
    [
      [['0992268993f22c640119', 'org', 0x16]],
      [['0992268993f22c640101', 'u1']],
      [['550409', 'Weg 1']],
      [['550408', 'X']],
    ],
    'ST=X,STREET=Weg 1,UID=u1,DC=org',
  ],
  [
    [[['550405', '12 3', 0x13]], [['55042a', 'Ann']], [[cn, 'ann']]],
    'CN=ann,2.5.4.42=#0c03416e6e,2.5.4.5=#130431322033',
  ],
  [[[[cn, '\0b\0m', 0x1e]]], 'CN=bm'],
  [[[[cn, Buffer.from('n\xe4me', 'latin1'), 0x14]]], 'CN=näme'],
  [[[['883703', 'x']]], '2.999.3=#0c0178'],
  [[[[cn, Buffer.from('n\xe4me', 'latin1')]]], 'CN=#0c046ee46d65'],
] as [Attribute[][], string][])(
  'the subject %j is written %j, as Java does',
  (entries, printed) => {
    expect(subjectName(name(...entries))).toBe(printed);
  },
);

test('a name of blanks without end is escaped at once', () => {
  const value = `a${' '.repeat(60_000)}b`;

  expect(subjectName(name([[cn, value]]))).toBe(`CN=${value}`);
}, 2_000);
