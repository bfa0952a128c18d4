import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import type { Client, Listener } from '../client/index.ts';
import { type Deferred, deferred } from '../support/index.ts';
import { LiveNodes, type Picture } from './config-live.ts';

/** Just enough of a client to decide when each reply comes. */
class SlowClient extends EventEmitter {
  readonly state = { name: 'connected' };
  readonly nodes = new Map<string, { value: string; czxid: bigint; mzxid: bigint }>();
  readonly held = new Map<string, Deferred<void>>();
  readonly reads: string[] = [];
  #listener: Listener = () => {};

  write(zxid: bigint, values: Record<string, string>): void {
    for (const [path, value] of Object.entries(values)) {
      const czxid = this.nodes.get(path)?.czxid ?? zxid;
      this.nodes.set(path, { value, czxid, mzxid: zxid });
    }
    for (const path of Object.keys(values)) this.#listener({ type: 'dataChanged', path, zxid });
  }

  hold(path: string): () => void {
    const gate = deferred();
    this.held.set(path, gate);
    return () => {
      this.held.delete(path);
      gate.resolve();
    };
  }

  async addWatch(_path: string, _mode: string, listener: Listener): Promise<void> {
    this.#listener = listener;
  }

  async removeWatches(): Promise<void> {}

  async childrenAndStat(path: string) {
    const children = [...this.nodes.keys()].map((one) => one.slice(path.length + 1));
    return { children, stat: { pzxid: 1n } };
  }

  async get(path: string) {
    this.reads.push(path);
    await this.held.get(path)?.promise;
    const { value, czxid, mzxid } = this.nodes.get(path)!;
    return { data: Buffer.from(value), stat: { czxid, mzxid } };
  }

  async exists(path: string) {
    const node = this.nodes.get(path);
    return node === undefined ? null : { czxid: node.czxid, mzxid: node.mzxid };
  }
}

const text = (picture: Picture) => [...picture.values()].map((node) => String(node?.data)).join();

test('what two transactions wrote is never shown as a mixture of them', async () => {
  const client = new SlowClient();
  client.write(1n, { '/c/a': '0', '/c/b': '0' });
  const seen: string[] = [];
  const live = new LiveNodes(client as unknown as Client, '/c', ['a', 'b'], {
    onPicture: (picture) => seen.push(text(picture)),
    onFailure: (errors) => seen.push(...errors.map(({ message }) => message)),
  });
  await expect.poll(() => seen).toEqual(['0,0']);

  // Of the first transaction only b is read in time; of the second only a.
  const [readA, readFirst] = [client.hold('/c/a'), client.reads.length];
  client.write(5n, { '/c/a': '1', '/c/b': '1' });
  await expect.poll(() => client.reads.length).toBe(readFirst + 2);
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  const readB = client.hold('/c/b');
  client.write(6n, { '/c/a': '2', '/c/b': '2' });
  readA();
  await expect.poll(() => client.reads.length).toBeGreaterThanOrEqual(readFirst + 3);
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(seen).toEqual(['0,0']);
  readB();

  await expect.poll(() => seen.at(-1)).toBe('2,2');
  expect(seen).toEqual(['0,0', '2,2']);
  await live.close();
});
