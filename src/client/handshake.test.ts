import { expect, test } from 'vitest';
import { Writer } from '../jute/index.ts';
import { ManualClock } from '../support/index.ts';
import { hello } from './handshake.ts';
import type { Transport } from './transport.ts';

const request = {
  protocolVersion: 0,
  lastZxidSeen: 0n,
  timeOut: 9_000,
  sessionId: 0n,
  passwd: Buffer.alloc(16),
  readOnly: false,
};

test('a server that breaks off TLS behind its handshake, as for want of a certificate, is quoted', async () => {
  const alert = Object.assign(new Error('80AC:error:0A00045C:SSL routines:ssl3_read_bytes\n'), {
    code: 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED',
    reason: 'tlsv13 alert certificate required',
  });
  const ended = Promise.resolve<Error>(alert);
  const transport = { writer: new Writer(), flush() {}, ended } as unknown as Transport;
  const { signal } = new AbortController();

  const answer = hello(transport, request, { clock: new ManualClock(), limitMs: 1_000, signal });

  await expect(answer).rejects.toThrow('broke off TLS: tlsv13 alert certificate required');
});
