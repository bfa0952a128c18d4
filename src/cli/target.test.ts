import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { targetOf } from './target.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'drover-target-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const nowhere = () => ({ HOME: folder, XDG_CONFIG_HOME: folder });
const file = (name: string, text: string) => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

test('a flag wins over the variable, and that over the default', async () => {
  const variable = { ...nowhere(), DROVER_SERVER: 'b:2' };

  expect(await targetOf({ server: 'a:1/x' }, variable)).toMatchObject({
    servers: 'a:1/x',
    origin: '--server',
  });
  expect(await targetOf({}, variable)).toMatchObject({ servers: 'b:2', origin: 'DROVER_SERVER' });
  expect(await targetOf({}, { ...nowhere(), DROVER_SERVER: '' })).toMatchObject({
    servers: '127.0.0.1:2181',
    origin: 'default',
    readOnly: false,
  });
});

test('a context that is named wins over the variable, with its servers and as who one is there', async () => {
  const contexts = {
    version: 1,
    previous: null,
    contexts: {
      test: { servers: 'c:3/x', readOnly: true, auth: [{ scheme: 'digest', auth: 'ann:secret' }] },
    },
    selected: 'test',
  };
  mkdirSync(join(folder, 'drover'));
  writeFileSync(join(folder, 'drover/contexts.json'), JSON.stringify(contexts), { mode: 0o600 });
  const variable = { ...nowhere(), DROVER_SERVER: 'b:2' };

  const named = await targetOf({ context: 'test' }, variable);
  const both = await targetOf({ context: 'test', server: 'a:1' }, variable);
  const neither = await targetOf({}, variable);

  expect(named).toMatchObject({ servers: 'c:3/x', origin: 'context test', readOnly: true });
  expect(named.client.auth).toEqual([{ scheme: 'digest', auth: 'ann:secret' }]);
  expect(both).toMatchObject({ servers: 'a:1', origin: '--server', readOnly: true });
  expect(neither).toMatchObject({ servers: 'b:2', readOnly: false });
  expect(neither.client.auth).toBeUndefined();
});

test('what makes no sense is refused by its name', async () => {
  await expect(targetOf({ server: '' }, nowhere())).rejects.toThrow('--server: ');
  await expect(targetOf({ server: 'h:99999' }, nowhere())).rejects.toThrow('--server: ');
  await expect(targetOf({ sessionTimeout: 'soon' }, nowhere())).rejects.toThrow(
    '--session-timeout',
  );
  await expect(targetOf({ tlsCa: 'none.pem' }, nowhere())).rejects.toThrow('none.pem');
  await expect(targetOf({ tls: true, tlsCert: 'x.jks' }, nowhere())).rejects.toThrow('PEM');
});

test('credentials come from flags, a file and a variable', async () => {
  const authFile = file('auth', 'digest:b:2\n\n digest:c:3 \n');

  const { client } = await targetOf(
    { auth: ['digest:a:1:with:colons'], authFile },
    { ...nowhere(), DROVER_AUTH: 'ip:x' },
  );

  expect(client.auth).toEqual([
    { scheme: 'digest', auth: 'a:1:with:colons' },
    { scheme: 'ip', auth: 'x' },
    { scheme: 'digest', auth: 'b:2' },
    { scheme: 'digest', auth: 'c:3' },
  ]);
});

test('TLS comes from flags or from zkCli’s file of properties', async () => {
  const pem = file('both.pem', 'PEM');
  const properties = file(
    'client.properties',
    `# ours\nzookeeper.client.secure=true\nzookeeper.ssl.keyStore.location = ${pem}\nzookeeper.ssl.trustStore.location: ${pem}\nzookeeper.ssl.keyStore.password=pw\n`,
  );

  const plain = await targetOf({}, nowhere());
  const flags = await targetOf({ tlsCa: pem, tlsName: 'zk1' }, nowhere());
  const java = await targetOf({ clientConfiguration: properties }, nowhere());

  expect(plain.client.tls).toBeUndefined();
  expect(flags.client.tls).toEqual({ ca: 'PEM', servername: 'zk1' });
  expect(java.client.tls).toEqual({ ca: 'PEM', cert: 'PEM', key: 'PEM', passphrase: 'pw' });
});

test('a file for TLS that is empty, a variable that nobody set, is no connection in the clear', async () => {
  for (const name of ['tlsCa', 'tlsCert', 'tlsKey']) {
    await expect(targetOf({ [name]: '' }, nowhere())).rejects.toThrow('a file is wanted');
  }
});
