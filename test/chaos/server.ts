/**
 * One server in a process of its own, to be killed, stopped or starved from outside.
 *
 *   node server.js '{"dataDir": "…", "snapCount": 50}'
 *
 * Prints `ready PORT` when it listens. SIGTERM ends it with 0; a failure of its own with 1 and a message.
 */

import { type ServerOptions, startServer } from '../../src/server/index.ts';

const options = JSON.parse(process.argv[2] ?? '{}') as ServerOptions;
try {
  const server = await startServer({
    port: 0,
    ...options,
    limits: { connectionsPerAddressMax: 0, ...options.limits },
  });
  process.stdout.write(`ready ${server.port}\n`);
  process.once('SIGTERM', () => void server.close().then(() => process.exit(0)));
  const error = await server.failed;
  process.stderr.write(`failed: ${error.stack}\n`);
} catch (error) {
  process.stderr.write(`refused to start: ${error}\n`);
}
process.exit(1);
