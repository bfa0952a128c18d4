/** A file that refuses what comes from a holder of before, because it remembers the highest token it saw. */

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'drover';
import { Lock } from 'drover/recipes';

/** Stands for whatever is written to: a database would do this in one UPDATE … WHERE token <= ?. */
class FencedFile {
  readonly #path: string;
  constructor(path: string) {
    this.#path = path;
  }

  async write(token: bigint, text: string): Promise<boolean> {
    const [highest = '0'] = (await readFile(this.#path, 'utf8').catch(() => '0\n')).split('\n');
    if (token < BigInt(highest)) return false;
    await writeFile(this.#path, `${token}\n${text}\n`);
    return true;
  }
}

const servers = process.env.ZK_SERVERS ?? '127.0.0.1:2181';
const folder = await mkdtemp(join(tmpdir(), 'fenced-'));
const file = new FencedFile(join(folder, 'report.txt'));
const [first, second] = [await connect(servers), await connect(servers)];
try {
  const old = await new Lock(first, '/locks/report').acquire();
  console.log('first holder:', await file.write(old.fencingToken, 'from the first'));

  // As if the first process had been stopped for longer than its session: its node goes.
  await second.delete(old.path);
  const now = await new Lock(second, '/locks/report').acquire();
  console.log('second holder:', await file.write(now.fencingToken, 'from the second'));

  // The first wakes up and goes on where it was. It does not know better, but the file does.
  console.log('first holder again:', await file.write(old.fencingToken, 'stale'));
  await now.release();
} finally {
  await Promise.all([first.close(), second.close()]);
  await rm(folder, { recursive: true });
}
