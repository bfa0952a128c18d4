/** Text and bytes by charset, as the page reads and writes them. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { charsets, decodeText, encodeText, guessCharset } from '../web/src/charset.ts';
import { guess, show } from '../web/src/decode.ts';

const bytes = (...list: number[]) => Uint8Array.from(list);

test('whatever a charset can say comes back the same, and the rest is refused', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.constantFrom(...charsets), (text, charset) => {
      const encoded = encodeText(text, charset);
      if (encoded !== null) expect(decodeText(encoded, charset)).toBe(text);
      else expect(charset).toBe('latin-1');
    }),
  );
});

test('bytes that are text come back as the same bytes, whichever charset was chosen', () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.constantFrom(...charsets), (data, charset) => {
      const text = decodeText(data, charset);
      if (text !== null) expect(encodeText(text, charset)).toEqual(Uint8Array.from(data));
      else expect(charset).not.toBe('latin-1');
    }),
  );
});

test('Latin-1 is byte for byte, and not the page of Windows', () => {
  expect(decodeText(bytes(0x80, 0x9f, 0xe4), 'latin-1')).toBe('\u0080\u009fä');
  expect(encodeText('€', 'latin-1')).toBeNull();
  expect(encodeText('\ud800', 'utf-8')).toBeNull();
});

test('a byte order mark tells UTF-16, which is then shown as text and as JSON', async () => {
  const text = encodeText('\ufeff{"a":"ä"}', 'utf-16le')!;

  expect([guessCharset(text), guess(text)]).toEqual(['utf-16le', 'text']);
  expect((await show(text, 'json')).text).toBe('{\n  "a": "ä"\n}');
  expect(await show(bytes(0xe4), 'text')).toMatchObject({ note: expect.stringMatching(/UTF-8/) });
  expect(await show(bytes(0xe4), 'text', 'latin-1')).toEqual({ text: 'ä', note: null });
});
