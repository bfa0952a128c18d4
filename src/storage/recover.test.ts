import { describe, expect, test } from 'vitest';
import { encodeMark, markName } from './durable-mark.ts';
import { logName } from './file-names.ts';
import { createTxn, createTxns, expectedNodes, FlatTree, folder, treeOf } from './fixtures.ts';
import type { LogEntry } from './log-entry.ts';
import { LogWriter } from './log-writer.ts';
import { recover } from './recover.ts';
import type { RecoverOptions } from './recovery-report.ts';
import { asideFolder } from './settle.ts';
import { errno, SimulatedDisk } from './simulated-disk.ts';
import { writeSnapshot } from './snapshot-writer.ts';

type Files = Map<string, Buffer>;
const at = (name: string) => `${folder}/${name}`;

/** Logs that start at the given zxids, and end at `last`. */
async function logs(starts: number[], last: number): Promise<Files> {
  const fs = new SimulatedDisk();
  const log = new LogWriter({ folder, lastZxid: BigInt(starts[0]! - 1), fs, preallocBytes: 0 });
  for (const [i, start] of starts.entries()) {
    log.roll();
    for (const txn of createTxns(start, (starts[i + 1] ?? last + 1) - 1)) await log.append([txn]);
  }
  await log.close();
  return fs.contents();
}

async function snapshot(zxid: number, options: { digestZxid?: bigint } = {}): Promise<Files> {
  const fs = new SimulatedDisk();
  const { digestZxid } = options;
  const digest = () => (digestZxid ? { zxid: digestZxid, version: 2, value: 0n } : null);
  const nodes = treeOf(zxid).snapshotNodes();
  const content = { sessions: new Map(), acls: new Map(), nodes, digest };
  await writeSnapshot({ ...content, zxid: BigInt(zxid) }, { folder, fs });
  return fs.contents();
}

const all = (...parts: Files[]): Files => new Map(parts.flatMap((part) => [...part]));

/** As Apache leaves a directory: without our mark. */
function unmarked(files: Files): Files {
  const copy = new Map(files);
  copy.delete(at(markName));
  return copy;
}

function without(files: Files, ...names: string[]): Files {
  return new Map([...files].filter(([path]) => !names.includes(path.slice(folder.length + 1))));
}

function changed(files: Files, name: string, change: (bytes: Buffer) => Buffer | undefined): Files {
  const bytes = Buffer.from(files.get(at(name))!);
  return new Map([...files, [at(name), change(bytes) ?? bytes]]);
}

async function start(files: Files, options: RecoverOptions = {}) {
  const fs = SimulatedDisk.of(files, [folder]);
  const tree = new FlatTree();
  const recovered = await recover(folder, folder, tree, { fs, ...options });
  return { fs, tree, recovered, kinds: recovered.notices.map(({ kind }) => kind) };
}

async function expectAll(files: Files, last: number) {
  const { tree, recovered, ...rest } = await start(files);
  expect(Number(recovered.lastZxid)).toBe(last);
  expect(tree.nodes).toEqual(expectedNodes(last));
  return { tree, recovered, ...rest };
}

const put = (offset: number, byte: number) => (bytes: Buffer) =>
  void bytes.fill(byte, offset, offset + 1);
const flipped = (offset: number, mask: number) => (bytes: Buffer) =>
  put(offset, bytes[offset]! ^ mask)(bytes);

const recordBytes = createTxn(1n).length + 13;
const offsetOf = (index: number) => 16 + index * recordBytes;

describe('what is recovered in full', () => {
  test('an empty directory is an empty tree', async () => {
    const { recovered } = await expectAll(new Map(), 0);

    expect(recovered).toMatchObject({ snapshot: null, txns: 0, notices: [] });
  });

  test('a snapshot and the logs behind it; older logs are not looked at', async () => {
    const files = all(await logs([1, 4, 8], 9), await snapshot(7));

    const { recovered } = await expectAll(without(files, 'log.1'), 9);

    expect(recovered.txns).toBe(2);
    expect(recovered.logs.map(({ file }) => file.name)).toEqual(['log.8']);
  });

  test('logs from zxid 1 without any snapshot', async () => {
    await expectAll(await logs([1, 6], 9), 9);
  });

  test('a log that begins before the snapshot ends', async () => {
    const { recovered } = await expectAll(all(await logs([1], 9), await snapshot(5)), 9);

    expect(recovered.txns).toBe(4);
  });

  test.each([
    ['flipped', flipped(100, 1)],
    ['cut short', (bytes: Buffer) => bytes.subarray(0, 200)],
    ['empty', () => Buffer.alloc(0)],
  ])('a newest snapshot that is %s: from the one before', async (_, change) => {
    const files = all(await logs([1, 4, 8], 9), await snapshot(3), await snapshot(7));

    const { recovered, kinds, tree } = await expectAll(changed(files, 'snapshot.7', change), 9);

    expect(recovered.snapshot!.file.name).toBe('snapshot.3');
    expect(kinds).toEqual(['snapshotSkipped']);
    expect(tree.begun).toBe(2);
  });

  test.each([0, 1, 8, 15, 16])('a log that was just begun, %i bytes long', async (bytes) => {
    const files = await logs([1], 5);
    const header = files.get(at('log.1'))!.subarray(0, bytes);

    const { kinds, fs } = await expectAll(new Map([...files, [at('log.6'), header]]), 5);

    expect(kinds).toEqual(['emptyLog']);
    expect(await fs.list(folder)).not.toContain('log.6');
  });

  test('a log of zeros, header and all: preallocated, and then the power went', async () => {
    const files = new Map([...(await logs([1], 5)), [at('log.6'), Buffer.alloc(5_000)]]);

    await expectAll(files, 5);
  });

  test('padding behind the last record', async () => {
    const pad = (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc(2_000_000)]);

    const { kinds } = await expectAll(changed(await logs([1], 5), 'log.1', pad), 5);

    expect(kinds).toEqual([]);
  });

  test('a last record cut short behind the mark: it is cut off on disk, and the log goes on', async () => {
    const files = await logs([1], 5);
    const whole = files.get(at('log.1'))!;
    const torn = changed(files, 'log.1', (bytes) =>
      Buffer.concat([bytes, bytes.subarray(16, 16 + 40), Buffer.alloc(3000)]),
    );

    const { kinds, fs } = await expectAll(torn, 5);

    expect(kinds).toEqual(['tornTail']);
    expect(fs.contents().get(at('log.1'))).toEqual(whole);
    const log = new LogWriter({ folder, lastZxid: 5n, fs, preallocBytes: 0 });
    await log.append([createTxn(6n)]);
    await log.close();
    await expectAll(fs.contents(), 6);
  });

  test('a jump to the first txn of a later epoch, as an ensemble makes', async () => {
    const fs = new SimulatedDisk();
    const log = new LogWriter({ folder, lastZxid: 0n, fs, preallocBytes: 0 });
    await log.append([...createTxns(1, 3), createTxn(0x5_0000_0001n), createTxn(0x5_0000_0002n)]);
    await log.close();

    const { recovered } = await start(fs.contents());

    expect(recovered).toMatchObject({ lastZxid: 0x5_0000_0002n, txns: 5 });
  });

  test('logs that end before the snapshot does: a member that was sent a whole snapshot', async () => {
    const { kinds } = await expectAll(all(await logs([1], 5), await snapshot(9)), 9);

    expect(kinds).toEqual(['logEndsBeforeSnapshot']);
  });

  test('a fuzzy snapshot, whose exact point is told', async () => {
    const fuzzy = await snapshot(5, { digestZxid: 8n });

    const { recovered } = await expectAll(all(await logs([1, 6], 9), fuzzy), 9);

    expect(recovered.exactFromZxid).toBe(8n);
  });

  test('files left over from a write that was never finished', async () => {
    const files = new Map([
      ...(await logs([1], 3)),
      [at('.drover-new-snapshot.2'), Buffer.alloc(9)],
    ]);

    const { kinds, fs } = await expectAll(files, 3);

    expect(kinds).toEqual(['leftOver']);
    expect((await fs.list(folder)).sort()).toEqual(['.drover-mark', 'log.1']);
  });
});

const zeroed = (from: number, to: number) => (bytes: Buffer) => void bytes.fill(0, from, to);
const padded = (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc(4096)]);

describe.each(['with our mark', 'without it, as Apache leaves it'])(
  'what is refused, %s',
  (how) => {
    const prepared = (files: Files) => (how.startsWith('with our') ? files : unmarked(files));

    const refusals: [string, () => Promise<Files>, object][] = [
      [
        'one record zeroed mid-log',
        async () => changed(await logs([1], 20), 'log.1', zeroed(offsetOf(9), offsetOf(10))),
        { code: 'DAMAGED_LOG', offset: offsetOf(9), zxids: { from: 10n, to: 20n } },
      ],
      [
        'a page zeroed mid-log',
        async () => changed(await logs([1], 200), 'log.1', zeroed(4096, 8192)),
        { code: 'DAMAGED_LOG', offset: offsetOf(Math.floor((4096 - 16) / recordBytes)) },
      ],
      [
        'an end byte wrong mid-log',
        async () => changed(await logs([1], 20), 'log.1', put(offsetOf(10) - 1, 0x43)),
        { code: 'DAMAGED_LOG', offset: offsetOf(9) },
      ],
      [
        'a bit flipped mid-log',
        async () => changed(await logs([1], 20), 'log.1', flipped(offsetOf(9) + 50, 4)),
        { code: 'DAMAGED_LOG', offset: offsetOf(9) },
      ],
      [
        'a bit flipped in the last record',
        async () =>
          changed(await logs([1], 20), 'log.1', (b) => {
            b[offsetOf(19) + 50]! ^= 4;
            return padded(b);
          }),
        { code: 'DAMAGED_LOG', offset: offsetOf(19), zxids: { from: 20n } },
      ],
      [
        'a huge length',
        async () => changed(await logs([1], 20), 'log.1', put(offsetOf(9) + 8, 0x7f)),
        { code: 'DAMAGED_LOG', offset: offsetOf(9) },
      ],
      [
        'a negative length',
        async () => changed(await logs([1], 20), 'log.1', put(offsetOf(9) + 8, 0xff)),
        { code: 'DAMAGED_LOG', offset: offsetOf(9) },
      ],
      [
        'a longer length in the last record',
        async () =>
          changed(await logs([1], 20), 'log.1', (b) => {
            b[offsetOf(19) + 10]! ^= 4;
            return padded(b);
          }),
        { code: 'DAMAGED_LOG', offset: offsetOf(19) },
      ],
      [
        'a hole in an older log, the newer whole, no snapshot',
        async () => changed(await logs([1, 11], 20), 'log.1', zeroed(offsetOf(4), offsetOf(6))),
        { code: 'DAMAGED_LOG', file: at('log.1'), offset: offsetOf(4) },
      ],
      [
        'an older log zeroed from some record on',
        async () => changed(await logs([1, 11], 20), 'log.1', zeroed(offsetOf(4), offsetOf(10))),
        { code: 'MISSING_TXNS', file: at('log.b'), zxids: { from: 5n, to: 10n } },
      ],
      [
        'an older log gone, and no snapshot',
        async () => without(await logs([1, 11], 20), 'log.1'),
        { code: 'MISSING_TXNS', zxids: { from: 1n, to: 10n } },
      ],
      [
        'the newest snapshot flipped and an older log gone',
        async () => {
          const files = all(await logs([1, 11], 20), await snapshot(0), await snapshot(10));
          return without(changed(files, 'snapshot.a', flipped(99, 1)), 'log.1');
        },
        { code: 'MISSING_TXNS', zxids: { from: 1n, to: 10n } },
      ],
      [
        'the newest snapshot flipped and the logs behind it gone',
        async () => {
          const files = all(await logs([1, 11], 20), await snapshot(0), await snapshot(20));
          return without(changed(files, 'snapshot.14', flipped(99, 1)), 'log.b');
        },
        { code: 'MISSING_TXNS', zxids: { from: 11n, to: 20n } },
      ],
      [
        'the only snapshot flipped, and no log',
        async () => changed(await snapshot(5), 'snapshot.5', flipped(99, 1)),
        { code: 'MISSING_TXNS' },
      ],
      [
        'a fuzzy snapshot whose logs do not reach as far as its nodes',
        async () => all(await logs([1, 6], 7), await snapshot(5, { digestZxid: 9n })),
        { code: 'MISSING_TXNS', zxids: { from: 8n, to: 9n } },
      ],
      [
        'a header zeroed with records behind it',
        async () => changed(await logs([1], 20), 'log.1', zeroed(0, 16)),
        { code: 'DAMAGED_LOG', offset: 0, zxids: { from: 1n, to: 20n } },
      ],
      [
        'a file under the name of another',
        async () => {
          const files = await logs([1, 11], 20);
          return new Map([...files, [at('log.b'), files.get(at('log.1'))!]]);
        },
        { code: 'DAMAGED_LOG', file: at('log.b') },
      ],
      [
        'a file that is not named for its first zxid',
        async () => {
          const files = await logs([1], 20);
          return new Map([...without(files, 'log.1'), [at('log.2'), files.get(at('log.1'))!]]);
        },
        { code: 'DAMAGED_LOG', file: at('log.2'), offset: 16 },
      ],
      [
        'two logs that overlap',
        async () => all(await logs([1], 20), await logs([11], 20)),
        { code: 'DAMAGED_LOG', file: at('log.b'), offset: 16 },
      ],
      [
        'a log begun behind txns that are not there',
        async () => new Map([...(await logs([1], 5)), [at('log.9'), Buffer.alloc(0)]]),
        { code: 'MISSING_TXNS', zxids: { from: 6n, to: 8n } },
      ],
    ];

    test.each(refusals)('%s', async (_, damage, expected) => {
      const files = prepared(await damage());

      await expect(start(files)).rejects.toMatchObject({ name: 'StorageError', ...expected });
      await expect(start(files)).rejects.toThrow(/\/data\/version-2/);
    });
  },
);

describe('what only the mark can tell', () => {
  test('a log cut off in the middle', async () => {
    const files = changed(await logs([1], 20), 'log.1', (b) => b.subarray(0, offsetOf(9)));

    await expect(start(files)).rejects.toMatchObject({ code: 'DAMAGED_LOG', offset: offsetOf(9) });
    await expectAll(unmarked(files), 9); // nothing in Apache's format says that there was more
  });

  test('the last records zeroed', async () => {
    const files = changed(await logs([1], 20), 'log.1', zeroed(offsetOf(18), offsetOf(20)));

    await expect(start(files)).rejects.toMatchObject({ code: 'DAMAGED_LOG', offset: offsetOf(18) });
  });

  test('the newest log gone', async () => {
    const files = without(await logs([1, 11], 20), 'log.b');

    await expect(start(files)).rejects.toMatchObject({ code: 'MISSING_TXNS' });
    await expectAll(unmarked(files), 10);
  });

  test('a power cut that left a hole in the last batch: nobody was told of it', async () => {
    const files = await logs([1], 40);
    const mark = encodeMark({ log: 1n, offset: offsetOf(20) });
    const holed = changed(files, 'log.1', zeroed(offsetOf(20), 2560));
    expect(offsetOf(21)).toBeLessThan(2560);

    const { kinds } = await expectAll(new Map([...holed, [at(markName), mark]]), 20);

    expect(kinds).toEqual(['tornTail']);
    await expect(start(unmarked(holed))).rejects.toMatchObject({ code: 'DAMAGED_LOG' });
  });

  test.each([
    ['than one batch can be, is damage', 66, 'DAMAGED_LOG'],
    ['than a batch without its largest entry, is a batch that nobody was told of', 62, null],
  ])('a hole with more whole records behind it %s', async (_, last, code) => {
    const fs = new SimulatedDisk();
    const log = new LogWriter({ folder, lastZxid: 0n, fs, preallocBytes: 0 });
    for (const txn of createTxns(1, last, 100_000)) await log.append([txn]);
    await log.close();
    const recordBytes = createTxn(1n, 100_000).length + 13;
    const offset = 16 + recordBytes;
    const mark = encodeMark({ log: 1n, offset });
    const sector = Math.ceil((offset + 1_000) / 512) * 512;
    const holed = changed(fs.contents(), 'log.1', zeroed(sector, sector + 512));
    const found = start(new Map([...holed, [at(markName), mark]]));

    if (code === null) {
      const { recovered, kinds } = await found;
      expect([Number(recovered.lastZxid), kinds]).toEqual([1, ['tornTail']]);
    } else {
      await expect(found).rejects.toMatchObject({ code, offset });
    }
  });

  test('a batch that lacks nothing but its last byte: nobody was told of it, unless the mark says so', async () => {
    const files = await logs([1], 20);
    const mark = (index: number): Files =>
      new Map([[at(markName), encodeMark({ log: 1n, offset: offsetOf(index) })]]);
    const lacking = changed(files, 'log.1', (bytes) => {
      bytes[offsetOf(20) - 1] = 0;
      return padded(bytes);
    });

    const { kinds } = await expectAll(all(lacking, mark(19)), 19);

    expect(kinds).toEqual(['tornTail']);
    const damage = { code: 'DAMAGED_LOG', offset: offsetOf(19) };
    await expect(start(all(lacking, mark(20)))).rejects.toMatchObject(damage);
    await expect(start(unmarked(lacking))).rejects.toMatchObject(damage);
    const wrong = changed(lacking, 'log.1', put(offsetOf(20) - 1, 0x43));
    await expect(start(all(wrong, mark(19)))).rejects.toMatchObject(damage);
  });

  test('a power cut that took the sector of a last byte, with more of the batch behind it', async () => {
    const sector = 512;
    const index = Array.from({ length: 2_000 }, (_, i) => i).find(
      (i) => (offsetOf(i) - 1) % sector === 0,
    )!;
    const files = await logs([1], index + 20);
    const lastByte = offsetOf(index) - 1;
    const holed = changed(files, 'log.1', zeroed(lastByte, lastByte + sector));
    const mark = encodeMark({ log: 1n, offset: offsetOf(index - 1) });

    const { kinds } = await expectAll(new Map([...holed, [at(markName), mark]]), index - 1);

    expect(kinds).toEqual(['tornTail']);
  });

  test('a wrong byte behind the mark, also where the zeros of a checksum are all that a sector has of its record', async () => {
    const index = Array.from({ length: 2_000 }, (_, i) => i).find((i) => offsetOf(i) % 512 >= 508)!;
    const files = await logs([1], index + 20);
    const offset = offsetOf(index);
    const wrong = changed(files, 'log.1', flipped(offset + 40, 1));
    const mark = encodeMark({ log: 1n, offset });

    const found = start(new Map([...wrong, [at(markName), mark]]));

    await expect(found).rejects.toMatchObject({ code: 'DAMAGED_LOG', offset });
  });

  test('a wrong length behind the mark, with the next record where the right one says', async () => {
    const files = await logs([1], 20);
    const offset = offsetOf(9);
    const wrong = changed(files, 'log.1', flipped(offset + 10, 0x40));
    const mark = encodeMark({ log: 1n, offset });

    const found = start(new Map([...wrong, [at(markName), mark]]));

    await expect(found).rejects.toMatchObject({ code: 'DAMAGED_LOG', offset });
  });

  test('a record that seems to reach past the end, with whole records inside it: damage where there is no mark', async () => {
    const files = await logs([1], 20);
    const offset = offsetOf(9);
    const wrong = changed(files, 'log.1', (bytes) => {
      bytes.writeInt32BE(1_000_000, offset + 8);
      bytes[offset + 40]! ^= 1;
      return bytes;
    });
    const mark: Files = new Map([[at(markName), encodeMark({ log: 1n, offset })]]);

    const damage = { code: 'DAMAGED_LOG', offset };
    await expect(start(unmarked(wrong))).rejects.toMatchObject(damage);
    const { kinds } = await expectAll(all(wrong, mark), 9);
    expect(kinds).toEqual(['tornTail']);
  });

  test('nothing of a log that Apache began behind it: a hole in that one is damage', async () => {
    const ours = await logs([1], 20);
    const theirs = unmarked(await logs([21], 60));
    const holed = changed(all(ours, theirs), 'log.15', zeroed(2560, 3072));

    await expect(start(holed)).rejects.toMatchObject({ code: 'DAMAGED_LOG', file: at('log.15') });
  });

  test('a mark that can not be read claims nothing', async () => {
    const files = changed(await logs([1], 9), markName, flipped(20, 1));

    await expectAll(files, 9);
  });
});

describe('salvage', () => {
  test('leaves what starts again, also where a log behind the damage holds nothing', async () => {
    const damaged = changed(await logs([1], 7), 'log.1', zeroed(offsetOf(4), offsetOf(6)));
    const files = all(damaged, await snapshot(10), new Map([[at('log.8'), Buffer.alloc(0)]]));

    const { fs, recovered } = await start(files, { salvage: true });
    const again = await start(fs.contents());

    expect([recovered.lastZxid, again.recovered.lastZxid]).toEqual([10n, 10n]);
  });

  test('goes on from the whole part, says what it gave up, and puts it aside', async () => {
    const damaged = changed(await logs([1, 11], 20), 'log.1', zeroed(offsetOf(4), offsetOf(6)));

    const { tree, recovered, fs } = await start(damaged, { salvage: true });

    expect(tree.nodes).toEqual(expectedNodes(4));
    const notice = recovered.notices.find(({ kind }) => kind === 'salvaged')!;
    expect(notice.zxids).toEqual({ from: 5n, to: 20n });
    expect(notice.message).toContain('went on from 0x4');
    expect(fs.contents().get(`${folder}/${asideFolder}/log.1`)).toEqual(damaged.get(at('log.1')));
    expect(fs.contents().get(`${folder}/${asideFolder}/log.b`)).toEqual(damaged.get(at('log.b')));
    const log = new LogWriter({ folder, lastZxid: 4n, fs, preallocBytes: 0 });
    await log.append(createTxns(5, 6));
    await log.close();
    await expectAll(fs.contents(), 6);
  });

  test('is told beforehand what it gives up behind the damage, and which snapshot would have done', async () => {
    const files = all(await logs([1, 11], 20), await snapshot(10));
    const holed = changed(files, 'log.1', zeroed(offsetOf(4), offsetOf(6)));
    const damaged = changed(holed, 'snapshot.a', flipped(99, 1));

    await expect(start(damaged)).rejects.toMatchObject({
      code: 'DAMAGED_LOG',
      zxids: { from: 5n, to: 10n },
      message: expect.stringMatching(
        /snapshot\.a is damaged; a salvage gives up all behind it, too, up to zxid 0x14 \(/,
      ),
    });
  });

  test('puts nothing in the place of what another put aside', async () => {
    const damaged = changed(await logs([1, 11], 20), 'log.1', zeroed(offsetOf(4), offsetOf(6)));
    const { fs } = await start(damaged, { salvage: true });
    const log = new LogWriter({ folder, lastZxid: 4n, fs, preallocBytes: 0 });
    await log.append(createTxns(5, 9));
    await log.close();

    const again = changed(fs.contents(), 'log.5', zeroed(offsetOf(0), offsetOf(1)));
    const { fs: second } = await start(again, { salvage: true });

    const aside = (name: string) => second.contents().get(`${folder}/${asideFolder}/${name}`);
    expect(aside('log.1')).toEqual(damaged.get(at('log.1')));
    expect(aside('log.b')).toEqual(damaged.get(at('log.b')));
    expect(aside('log.1.2')).toEqual(again.get(at('log.1')));
    expect(aside('log.5')).toEqual(again.get(at('log.5')));
  });

  test('gives up a snapshot that can not be read, where the logs end before it', async () => {
    const files = all(await logs([1], 5), await snapshot(9));
    const damaged = changed(files, 'snapshot.9', flipped(99, 1));

    const { fs, tree } = await start(damaged, { salvage: true });

    expect(tree.nodes).toEqual(expectedNodes(5));
    await expectAll(fs.contents(), 5);
  });

  test('has nothing to go on from when the beginning is gone', async () => {
    const files = without(await logs([1, 11], 20), 'log.1');

    await expect(start(files, { salvage: true })).rejects.toMatchObject({ code: 'MISSING_TXNS' });
  });

  test('interrupted anywhere, it leaves a directory that is refused or whole', async () => {
    const damaged = changed(await logs([1, 6, 11], 20), 'log.6', zeroed(offsetOf(1), offsetOf(2)));
    for (let stop = 1; ; stop++) {
      const fs = SimulatedDisk.of(damaged, [folder]);
      fs.fault = ({ nth, path }) => {
        if (nth >= stop) throw errno('EIO', path);
        return undefined;
      };
      const isDone = await recover(folder, folder, new FlatTree(), { fs, salvage: true }).then(
        () => true,
        () => false,
      );

      const outcome = await start(fs.contents()).catch((error) => error.code);

      if (typeof outcome !== 'string') expect(outcome.tree.nodes).toEqual(expectedNodes(6));
      else expect(['DAMAGED_LOG', 'MISSING_TXNS']).toContain(outcome);
      if (isDone) break;
    }
  });
});

test('looking changes nothing', async () => {
  const files = new Map([...(await logs([1], 5)), [at('log.6'), Buffer.alloc(3)]]);
  const fs = SimulatedDisk.of(files, [folder]);

  await recover(folder, folder, new FlatTree(), { fs, readOnly: true });

  expect(fs.contents()).toEqual(files);
});

test('a txn that can not be applied is named', async () => {
  const fs = SimulatedDisk.of(await logs([1], 5), [folder]);
  const tree = new FlatTree();
  tree.txn = ({ zxid }: LogEntry) => {
    if (zxid === 3n) throw new Error('no such parent');
  };

  const recovering = recover(folder, folder, tree, { fs, salvage: true });

  await expect(recovering).rejects.toMatchObject({
    code: 'NOT_APPLIED',
    offset: offsetOf(2),
    zxids: { from: 3n, to: 3n },
  });
});

test('snapshots and logs may be in two folders', async () => {
  const logFiles = await logs([1, 6], 9);
  const moved = [...(await snapshot(5))].map(([path, bytes]) => [
    path.replace('/data/', '/snap/'),
    bytes,
  ]);
  const fs = SimulatedDisk.of(new Map([...logFiles, ...(moved as [string, Buffer][])]), []);
  const tree = new FlatTree();

  const { txns } = await recover('/snap/version-2', folder, tree, { fs });

  expect(txns).toBe(4);
  expect(tree.nodes).toEqual(expectedNodes(9));
  expect(await fs.list(folder)).toContain(logName(6n));
});
