/** Who a command says it is, end to end: TLS both ways, SASL, and what is refused. */

import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Sasl, startServer } from '../src/server/index.ts';
import { certificates } from './certificates/certificates.ts';
import { runInProcess } from './cli-run.ts';

type Server = Awaited<ReturnType<typeof startServer>>;
let server: Server;
const pem = (name: string) => join(resolve(import.meta.dirname, 'certificates'), `${name}.pem`);

beforeAll(async () => {
  server = await startServer({
    inMemory: true,
    port: 0,
    tls: {
      port: 0,
      key: certificates.server.key,
      cert: certificates.server.cert,
      ca: certificates.ca,
      requestCert: true,
      rejectUnauthorized: true,
    },
    sasl: new Sasl({ passwordOf: (name) => (name === 'ann' ? 'secret' : undefined) }),
  });
});

afterAll(() => server.close());

const secure = (...flags: string[]) =>
  runInProcess(`127.0.0.1:${server.securePort}`, ['whoami', '--connect-timeout', '1000', ...flags]);

test('a certificate of ours that the server trusts, and one of its own that we do', async () => {
  const mutual = [
    ...['--tls-ca', pem('ca.cert'), '--tls-cert', pem('client.cert')],
    ...['--tls-key', pem('client.key'), '--tls-name', 'localhost'],
  ];

  const said = await secure(...mutual);

  expect(said).toMatchObject({ code: 0, err: '' });
  expect(said.out).toMatch(/^x509: /m);
});

test('a certificate that we do not trust, or none of ours, is no connection', async () => {
  const own = ['--tls-cert', pem('client.cert'), '--tls-key', pem('client.key')];

  const [stranger, nobody, plain] = await Promise.all([
    secure('--tls-ca', pem('other-ca.cert'), '--tls-name', 'localhost', ...own),
    secure('--tls-ca', pem('ca.cert'), '--tls-name', 'localhost'),
    secure(),
  ]);

  for (const said of [stranger, nobody, plain]) expect(said).toMatchObject({ code: 7, out: '' });
});

test('SASL by a user whose password stands in a variable', async () => {
  const run = (password: string) =>
    runInProcess(server.address, ['whoami', '--sasl-user', 'ann', '--connect-timeout', '1000'], {
      environment: { DROVER_SASL_PASSWORD: password },
    });

  const right = await run('secret');
  const wrong = await run('canary');

  expect(right).toMatchObject({ code: 0, err: '' });
  expect(right.out).toMatch(/^sasl:/m);
  expect(wrong.code).toBe(7);
  expect(wrong.err).not.toContain('canary');
});
