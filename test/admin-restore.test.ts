/** A snapshot that is brought back over the admin server takes the place of all there is. */

import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test, vi } from 'vitest';
import { type Client, connect, isZkError } from '../src/client/index.ts';
import {
  type AdminOptions,
  metricsOf,
  type RunningServer,
  type ServerOptions,
  startAdminServer,
  startServer,
} from '../src/server/index.ts';
import { realFileSystem } from '../src/storage/index.ts';
import { deferred } from '../src/support/index.ts';

const asSuper = { authorization: 'digest super:test' };
const superDigest = 'super:D/InIHSb7yEEbrWz8b9l71RjZJU=';
const isOn = { snapshotEnabled: true, restoreEnabled: true, snapshotIntervalMs: 0 };

interface Held {
  readonly server: RunningServer;
  readonly dataDir: string;
  snapshot(): Promise<Buffer>;
  restore(
    bytes: Uint8Array,
    headers?: Record<string, string>,
  ): Promise<{ status: number; body: { last_zxid?: number; error?: string | null } }>;
  get(path: string): Promise<Response>;
}

async function held(
  body: (held: Held) => Promise<void>,
  admin: AdminOptions = isOn,
  options: ServerOptions = {},
): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'drover-restore-'));
  const all = { port: 0, dataDir, superDigest, ...options };
  await using server = await startServer(all);
  const desk = await startAdminServer(server.facts, { port: 0, ...admin });
  const at = (path: string) => `http://127.0.0.1:${desk.port}${path}`;
  try {
    await body({
      server,
      dataDir,
      snapshot: async () => {
        const answer = await fetch(at('/commands/snapshot'), { headers: asSuper });
        return Buffer.from(await answer.arrayBuffer());
      },
      restore: async (bytes, headers = asSuper) => {
        const asked = { method: 'POST', headers, body: new Uint8Array(bytes) };
        const answer = await fetch(at('/commands/restore'), asked);
        return { status: answer.status, body: (await answer.json()) as never };
      },
      get: (path) => fetch(at(path), { headers: asSuper }),
    });
  } finally {
    await desk.close();
    await server.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

const text = async (client: Client, path: string) => String((await client.get(path)).data);

test('all is as it was when the snapshot was taken, and stays so over restarts', async () => {
  await held(async ({ server, dataDir, snapshot, restore }) => {
    const client = await connect(server.address);
    await client.create('/kept', 'before');
    await client.create('/gone-later');
    const before = await client.exists('/kept');
    const bytes = await snapshot();
    await client.set('/kept', 'after');
    await client.delete('/gone-later');
    await client.create('/new-later');
    await client.create('/mine', '', { mode: 'ephemeral' });
    const lastZxid = server.engine.lastZxid;

    const { status, body } = await restore(bytes);

    expect(status).toBe(200);
    expect(body).toMatchObject({ last_zxid: lastZxid + 1, command: 'restore', error: null });
    expect(await text(client, '/kept')).toBe('before');
    expect((await client.exists('/kept'))!.mzxid).toBe(before!.mzxid);
    expect(await client.exists('/gone-later')).not.toBeNull();
    expect(await client.exists('/new-later')).toBeNull();
    expect(await client.exists('/mine')).toBeNull();
    await client.set('/kept', 'later still');
    await client.close();
    await server.close();
    for (const next of ['once more', 'and again']) {
      await using again = await startServer({ port: 0, dataDir });
      const reader = await connect(again.address);
      expect(await text(reader, '/kept')).toBe(next === 'once more' ? 'later still' : 'once more');
      expect(await reader.exists('/new-later')).toBeNull();
      await reader.set('/kept', next);
      await reader.close();
    }
  });
});

test('a session that is in the snapshot goes on, one that came later is over', async () => {
  await held(async ({ server, snapshot, restore }) => {
    const old = await connect(server.address);
    await old.create('/old', '', { mode: 'ephemeral' });
    const { sessionId } = old;
    const bytes = await snapshot();
    const late = await connect(server.address, { renew: false });
    await late.create('/late', '', { mode: 'ephemeral' });

    expect((await restore(bytes)).status).toBe(200);

    expect(await old.exists('/old')).not.toBeNull();
    expect(old.sessionId).toBe(sessionId);
    const error = await late.exists('/late').catch((reason: unknown) => reason);
    expect(isZkError(error, 'SESSION_EXPIRED')).toBe(true);
    expect(await old.exists('/late')).toBeNull();
    await old.close();
    await vi.waitFor(() => expect(server.engine.tree.find('/old')).toBe(-1));
    await late.close();
  });
});

test('a snapshot of another server, further on than this one, keeps its zxid', async () => {
  await held(async (other) => {
    const writer = await connect(other.server.address);
    for (let i = 0; i < 50; i++) await writer.create(`/n${i}`);
    await writer.close();
    const bytes = await other.snapshot();
    await held(async ({ server, restore }) => {
      const { body } = await restore(gzipSync(bytes));

      expect(body.last_zxid).toBe(other.server.engine.lastZxid);
      const reader = await connect(server.address);
      expect((await reader.children('/')).length).toBe(51);
      await reader.close();
    });
  });
});

test('what is no whole snapshot is refused with why, and nothing is changed', async () => {
  await held(async ({ server, dataDir, snapshot, restore }) => {
    const client = await connect(server.address);
    await client.create('/kept', 'x'.repeat(2000));
    const bytes = await snapshot();
    const turned = Buffer.from(bytes);
    turned[bytes.indexOf('xxxx')]! ^= 1;
    const { engine } = server;
    const files = readdirSync(join(dataDir, 'version-2')).sort();

    for (const wrong of [Buffer.alloc(0), bytes.subarray(0, -30), turned, gzipSync('no')]) {
      const { status, body } = await restore(wrong);
      expect(status).toBe(500);
      expect(body.error).toMatch(/./);
      expect(body.last_zxid).toBeUndefined();
    }

    expect(server.engine).toBe(engine);
    expect(readdirSync(join(dataDir, 'version-2')).sort()).toEqual(files);
    expect(await client.exists('/kept')).not.toBeNull();
    const errors = metricsOf(server.facts).find(({ name }) => name === 'restore_error_count');
    expect(errors).toMatchObject({ value: 4 });
    await client.close();
  });
});

test('who may not do everything restores nothing; nobody does where it is off, or too soon', async () => {
  await held(async ({ server, snapshot, restore, get }) => {
    const client = await connect(server.address, {
      auth: [{ scheme: 'digest', auth: 'super:test' }],
    });
    const bytes = await snapshot();
    await client.setAcl('/', [{ perms: 1, id: { scheme: 'world', id: 'anyone' } }]);
    await client.close();

    expect((await restore(bytes, {})).status).toBe(401);
    expect((await restore(bytes, { authorization: 'digest me:wrong' })).status).toBe(403);
    expect((await get('/commands/restore')).status).toBe(405);
    expect((await restore(bytes)).status).toBe(200);
  });
  await held(
    async ({ snapshot, restore, server }) => {
      const bytes = await snapshot();
      expect((await restore(bytes)).status).toBe(200);
      expect((await restore(bytes)).status).toBe(429);
      const count = metricsOf(server.facts).find(
        ({ name }) => name === 'restore_rate_limited_count',
      );
      expect(count).toMatchObject({ value: 1 });
    },
    { ...isOn, snapshotIntervalMs: 300_000 },
  );
  await held(
    async ({ snapshot, restore }) => {
      expect((await restore(await snapshot())).status).toBe(503);
    },
    { snapshotEnabled: true },
  );
});

test('a server that is closed does not wait for what is still being brought', async () => {
  await held(async ({ server, dataDir, snapshot }) => {
    const bytes = await snapshot();
    const isRead = deferred();
    async function* upload() {
      yield bytes.subarray(0, 100);
      isRead.resolve();
      await new Promise<never>(() => {}); // whoever brings it has stalled
    }
    const restored = server.facts.storage!.restore!(upload());
    await isRead.promise;

    const closed = server.close();

    await expect(restored).rejects.toThrow('the server stops');
    await closed;
    expect(readdirSync(join(dataDir, 'version-2')).join()).not.toContain('restore');
  });
});

test('where the disk does not take it the server goes on with what it had', async () => {
  let isFull = false;
  const fs = {
    ...realFileSystem,
    rename: (from: string, to: string) => {
      if (!isFull || !to.includes('snapshot.')) return realFileSystem.rename(from, to);
      isFull = false;
      return Promise.reject(new Error('the disk is full'));
    },
  };
  await held(
    async ({ server, snapshot, restore }) => {
      const client = await connect(server.address);
      await client.create('/kept', 'before');
      const bytes = await snapshot();
      await client.set('/kept', 'after');
      isFull = true;

      const { status, body } = await restore(bytes);

      expect(status).toBe(500);
      expect(body.error).toContain('the disk is full');
      expect(await text(client, '/kept')).toBe('after');
      await client.set('/kept', 'goes on');
      await client.close();
    },
    isOn,
    { fs },
  );
});

test('a server that can not begin again says so to who asked, and stops', async () => {
  let isBroken = false;
  const fs = {
    ...realFileSystem,
    list: (folder: string) =>
      isBroken ? Promise.reject(new Error('the disk is gone')) : realFileSystem.list(folder),
    rename: async (from: string, to: string) => {
      await realFileSystem.rename(from, to);
      isBroken = to.includes('snapshot.') && server !== undefined;
    },
  };
  let server: RunningServer | undefined;
  await held(
    async ({ snapshot, restore, ...more }) => {
      const bytes = await snapshot();
      server = more.server;

      const { status, body } = await restore(bytes);

      expect(status).toBe(500);
      expect(body.error).toContain('the disk is gone');
      expect((await server.failed).message).toContain('the disk is gone');
    },
    isOn,
    { fs },
  );
});
