/**
 * A process that holds many locks and is stopped between its read and its write.
 *
 *   node --import tsx holder.ts <address> <folder> <locks> <sessionTimeoutMs>
 *   on 'hold'    takes every lock, reads its file, says 'inside'
 *   on 'write'   writes to every file without asking anybody, as code does that did not listen
 */

import { join } from 'node:path';
import { type Client, connect, isZkError } from '../../src/client/index.ts';
import { type Grant, Lock, NotHeldError } from '../../src/recipes/index.ts';
import { FencedFile } from './fenced-file.ts';

const [address = '', folder = '', locks = '', timeout = ''] = process.argv.slice(2);
const open = () => connect(address, { sessionTimeoutMs: Number(timeout), renew: true });
const clients: Client[] = await Promise.all(Array.from({ length: Number(locks) }, open));
const files = clients.map((_, i) => new FencedFile(join(folder, String(i))));
let held: { readonly grant: Grant; readonly seen: number | null }[] = [];

/** Sessions this short may end by themselves on a busy machine. */
const triesMax = 50;

async function acquired(client: Client, i: number): Promise<Grant> {
  for (let tries = 1; ; tries++) {
    try {
      return await new Lock(client, `/fenced/${i}`).acquire();
    } catch (error) {
      const isOver = error instanceof NotHeldError || isZkError(error);
      if (!isOver || tries === triesMax) throw error;
    }
  }
}

async function hold(): Promise<void> {
  await Promise.all(held.map(({ grant }) => grant.release()));
  held = await Promise.all(
    clients.map(async (client, i) => {
      const grant = await acquired(client, i);
      return { grant, seen: files[i]!.read(grant.fencingToken) };
    }),
  );
  process.send?.({ type: 'inside', tokens: held.map(({ grant }) => grant.fencingToken) });
}

function write(): void {
  // The write first: nothing in this process has had the time to notice anything.
  const accepted = held.map(({ grant, seen }, i) =>
    files[i]!.write(grant.fencingToken, (seen ?? 0) + 1),
  );
  const isHeld = held.map(({ grant }) => grant.isHeld);
  process.send?.({ type: 'wrote', accepted, isHeld });
}

process.on('message', (message) => {
  if (message === 'write') write();
  else hold().catch((error: unknown) => process.send?.({ type: 'failed', error: String(error) }));
});
process.on('disconnect', () => process.exit(0));
process.send?.({ type: 'ready' });
