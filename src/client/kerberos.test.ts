import { expect, test } from 'vitest';
import { type KerberosModule, kerberos } from './kerberos.ts';

const endpoint = { host: { name: 'zk1.example.com', port: 2181 }, address: '127.0.0.1' };

/** The package's behaviour as its documentation has it: two tokens, then the layers (RFC 4752). */
function scripted() {
  const said: string[] = [];
  let steps = 0;
  const module: KerberosModule = {
    GSS_MECH_OID_KRB5: 9,
    async initializeClient(service, options) {
      said.push(`for ${service} ${JSON.stringify(options)}`);
      return {
        get contextComplete() {
          return steps >= 2;
        },
        username: 'ann@EXAMPLE.COM',
        async step(challenge) {
          said.push(`step ${text(challenge)}`);
          steps += 1;
          return steps === 1 ? base64('ticket') : null;
        },
        async unwrap(challenge) {
          said.push(`unwrap ${text(challenge)}`);
          return base64('layers');
        },
        async wrap(offer, options) {
          said.push(`wrap ${text(offer)} ${JSON.stringify(options)}`);
          return base64('none, thanks');
        },
      };
    },
  };
  return { module, said };
}

const base64 = (plain: string) => Buffer.from(plain).toString('base64');
const text = (encoded: string) => Buffer.from(encoded, 'base64').toString();

test('a ticket is shown, accepted, and no layer is asked for', async () => {
  const { module, said } = scripted();

  const exchange = await kerberos({ module })(endpoint);
  const first = await exchange.start();
  const second = await exchange.step(Buffer.from('accepted'));
  const third = await exchange.step(Buffer.from('offer'));
  const last = await exchange.step(Buffer.alloc(0));

  expect([first, second, third].map(String)).toEqual(['ticket', '', 'none, thanks']);
  expect(last).toBeNull();
  expect(said).toEqual([
    'for zookeeper@zk1.example.com {"mechOID":9}',
    'step ',
    'step accepted',
    'unwrap offer',
    'wrap layers {"user":"ann@EXAMPLE.COM"}',
  ]);
});

test("the servers' principal and our own can be named", async () => {
  const { module, said } = scripted();

  await kerberos({ module, service: 'zk', host: 'ensemble', principal: 'bob@EXAMPLE.COM' })(
    endpoint,
  );

  expect(said).toEqual(['for zk@ensemble {"mechOID":9,"principal":"bob@EXAMPLE.COM"}']);
});

test('without the package the error says what to install', async () => {
  await expect(async () => kerberos()(endpoint)).rejects.toThrow('npm install kerberos');
});

test('a service that is a whole principal is refused', () => {
  expect(() => kerberos({ service: 'zookeeper@host' })).toThrow('service: the first part');
});
