/** One process of the replicated log. Arguments: id, port of each broker from 1 on, directory. */

import { connect } from 'drover';
import { startBroker } from 'drover/kafka';
import { LogService } from './log-service.ts';
import { serve } from './wire.ts';

const [idText, portsText, directory] = process.argv.slice(2) as [string, string, string];
const id = Number(idText);
const ports = portsText.split(',').map(Number);
const portOf = (broker: number) => ports[broker - 1]!;

const zk = await connect(process.env.ZK_SERVERS ?? '127.0.0.1:2181', {
  renew: true,
  sessionTimeoutMs: Number(process.env.SESSION_TIMEOUT_MS ?? 4_000),
});
const service = new LogService(id, directory, portOf);
const server = await serve(portOf(id), service.handle);
const broker = await startBroker(zk, {
  id,
  endpoints: [`PLAINTEXT://127.0.0.1:${portOf(id)}`],
  service,
  isrNotification: { quietMs: 200 },
});
console.log(`broker ${id} is up`);

// It ends with the process that started it, however that ends.
process.stdin.resume().on('close', () => process.exit(1));
process.on('SIGTERM', async () => {
  await broker.close();
  await zk.close();
  server.close();
  process.exit(0);
});
