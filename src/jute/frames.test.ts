import fc from 'fast-check';
import { afterEach, expect, test, vi } from 'vitest';
import { FrameSplitter } from './frames.ts';
import { ProtocolError } from './protocol-error.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

const prefix = (length: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(length);
  return bytes;
};
const framed = (body: Uint8Array) => Buffer.concat([prefix(body.length), body]);

function collecting(frameBytesMax: number) {
  const frames: { hex: string; borrowed: boolean; memory: Buffer }[] = [];
  const splitter = new FrameSplitter(frameBytesMax, (memory, start, end, borrowed) => {
    frames.push({ hex: memory.toString('hex', start, end), borrowed, memory });
  });
  return { frames, splitter };
}

test('however the stream is chunked, the frames are those that went in', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 12 }),
      fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 40 }),
      fc.integer({ min: 0, max: 30 }),
      (bodies, sizes, cutOff) => {
        const whole = Buffer.concat(bodies.map(framed));
        const stream = whole.subarray(0, Math.max(0, whole.length - cutOff));
        const { frames, splitter } = collecting(40);
        let at = 0;
        for (const size of [...sizes, stream.length]) {
          splitter.push(Buffer.from(stream.subarray(at, at + size)));
          at += size;
        }

        let left = stream.length;
        const expected: string[] = [];
        for (const body of bodies) {
          if (left < 4 + body.length) break;
          left -= 4 + body.length;
          expected.push(Buffer.from(body).toString('hex'));
        }
        expect(frames.map(({ hex }) => hex)).toEqual(expected);
        expect(splitter.pendingBytes).toBe(left);
      },
    ),
    { numRuns: 1_000 },
  );
});

test('a frame that lies whole in a chunk is handed on where it lies, one that spans is not', () => {
  const { frames, splitter } = collecting(100);
  const stream = Buffer.concat([framed(Buffer.from('one')), framed(Buffer.from('two'))]);
  const first = stream.subarray(0, 9);
  const second = Buffer.from(stream.subarray(9));

  splitter.push(first);
  splitter.push(second);
  second.fill(0);

  expect(frames.map(({ borrowed }) => borrowed)).toEqual([true, false]);
  expect(frames[0]!.memory).toBe(first);
  expect(frames[1]!.memory.subarray(4, 7).toString()).toBe('two');
});

test.each([-1, -(2 ** 31), 101, 2 ** 31 - 1])('a length of %i is refused', (length) => {
  const bytes = Buffer.concat([prefix(length), Buffer.alloc(8)]);
  const { splitter } = collecting(100);
  const dribbled = collecting(100).splitter;

  expect(() => splitter.push(bytes)).toThrow(ProtocolError);
  for (let i = 0; i < 3; i++) dribbled.push(bytes.subarray(i, i + 1));
  expect(() => dribbled.push(bytes.subarray(3, 4))).toThrow(ProtocolError);
});

test('what lies behind the end of a chunk is none of it', () => {
  const { frames, splitter } = collecting(100);
  const stream = Buffer.concat([framed(Buffer.from('one')), framed(Buffer.from('two'))]);
  const texts = () => frames.map(({ hex }) => Buffer.from(hex, 'hex').toString());

  splitter.push(stream, 0);
  splitter.push(stream, 2);
  splitter.push(stream.subarray(2), 3);
  expect(texts()).toEqual([]);
  splitter.push(stream.subarray(5), 7);
  expect(texts()).toEqual(['one']);
  expect(splitter.pendingBytes).toBe(5);
  splitter.push(stream.subarray(12), 2);

  expect(texts()).toEqual(['one', 'two']);
});

test('the longest frame that is taken is taken', () => {
  const { frames, splitter } = collecting(100);

  splitter.push(framed(Buffer.alloc(100)));

  expect(frames).toHaveLength(1);
});

test('a length that is refused costs no memory', () => {
  const allocated = vi.spyOn(Buffer, 'allocUnsafeSlow');
  const { splitter } = collecting(2 ** 20);

  expect(() => splitter.push(Buffer.concat([prefix(2 ** 20 + 1), Buffer.alloc(8)]))).toThrow(
    ProtocolError,
  );

  expect(allocated).not.toHaveBeenCalled();
});

test('memory grows with what has arrived, not with what a length promised', () => {
  const allocated = vi.spyOn(Buffer, 'allocUnsafeSlow');
  const { splitter } = collecting(2 ** 30);
  const largest = () => Math.max(...allocated.mock.calls.map(([bytes]) => bytes));

  splitter.push(Buffer.concat([prefix(2 ** 30), Buffer.alloc(6)]));
  expect(largest()).toBeLessThanOrEqual(20);
  for (let i = 0; i < 99_990; i++) splitter.push(Buffer.of(0));

  expect(splitter.pendingBytes).toBe(100_000);
  expect(largest()).toBeLessThanOrEqual(200_000);
  // Doubling: a frame that comes byte by byte is not copied once for each byte.
  expect(allocated.mock.calls.length).toBeLessThan(25);
});

test('a frame that was put together leaves nothing behind', () => {
  const { frames, splitter } = collecting(2 ** 20);
  const frame = framed(Buffer.alloc(50_000, 1));

  splitter.push(frame.subarray(0, 30_000));
  expect(splitter.pendingBytes).toBe(30_000);
  splitter.push(frame.subarray(30_000));

  expect(splitter.pendingBytes).toBe(0);
  splitter.push(framed(Buffer.of(5)));
  expect(frames.map(({ hex }) => hex.length / 2)).toEqual([50_000, 1]);
});
