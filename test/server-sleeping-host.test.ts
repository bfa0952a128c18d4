import { expect, test, vi } from 'vitest';

const host = vi.hoisted(() => ({ sleptMs: 0 }));

vi.mock('node:os', async (original) => {
  const os = await original<typeof import('node:os')>();
  return { ...os, uptime: () => os.uptime() + host.sleptMs / 1_000 };
});

const { connect } = await import('../src/client/index.ts');
const { systemClock, monotonicClock } = await import('../src/support/index.ts');
const { Link } = await import('../src/testing/index.ts');
const { startServer } = await import('../src/server/index.ts');

test('a server whose host slept leaves its sessions what they had of their time', async () => {
  await using server = await startServer({ port: 0, inMemory: true, tickTimeMs: 200 });
  const options = { sessionTimeoutMs: 1_000, clock: monotonicClock };
  const client = await connect(server.address, options);
  const link = await Link.to({ host: '127.0.0.1', port: server.port });
  const other = await connect(link.address, options);
  await client.create('/stays', '', { mode: 'ephemeral' });
  await other.create('/goes', '', { mode: 'ephemeral' });
  const { now } = Date;
  const calendar = vi.spyOn(Date, 'now').mockImplementation(() => now() + host.sleptMs);
  const beforeMs = systemClock.nowMs();

  const gone = new Promise((resolve) => void client.exists('/goes', { watch: resolve }));
  await client.exists('/stays'); // it is watched
  link.blackhole(); // this session ends by time, so that the server has looked whose is over

  host.sleptMs = 3_600_000;
  expect(systemClock.nowMs() - beforeMs).toBeGreaterThan(3_600_000);
  await gone;

  expect(client.state.name).toBe('connected');
  expect(await client.exists('/stays')).not.toBeNull();
  link.heal();
  await Promise.all([client.close(), other.close()]);
  await link.close();
  calendar.mockRestore();
});
