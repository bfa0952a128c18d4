import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fetchApacheInto, findApache, homePeer } from './apache.ts';
import { apacheJars, jarName, jarPath } from './apache-jars.ts';

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'drover-apache-'));
  mkdirSync(join(dir, 'jdk', 'bin'), { recursive: true });
  writeFileSync(join(dir, 'jdk', 'bin', 'java'), '#!/bin/sh\n', { mode: 0o755 });
});

afterEach(() => rmSync(dir, { recursive: true, force: true }));

const environment = () => ({ JAVA_HOME: join(dir, 'jdk'), XDG_CACHE_HOME: join(dir, 'cache') });

test('ZOOKEEPER_HOME comes first, and one that holds no release is told of', async () => {
  const home = join(dir, 'zk');
  mkdirSync(join(home, 'lib'), { recursive: true });
  await expect(homePeer(home)).rejects.toThrow(/without .*zookeeper-<version>\.jar/);
  writeFileSync(join(home, 'lib', 'zookeeper-3.9.1.jar'), '');

  const peer = await findApache({ env: { ...environment(), ZOOKEEPER_HOME: home } });

  expect(peer).toEqual({
    name: 'apache-3.9.1',
    version: '3.9.1',
    classPath: join(home, 'lib', '*'),
  });
});

test('without Java there is nothing to run it with', async () => {
  const env = { ...environment(), JAVA_HOME: join(dir, 'nowhere') };

  await expect(findApache({ env })).rejects.toThrow(/JAVA_HOME/);
});

test('what is fetched and has another sum is not kept', async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url!);
    response.end('not the jar');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const env = { ...environment(), DROVER_MAVEN_URL: `http://127.0.0.1:${port}/m2/` };

  const fetched = fetchApacheInto(join(dir, 'cache', 'drover', 'apache'), { env });

  await expect(fetched).rejects.toThrow(/has sum .* not used/);
  expect(asked[0]).toMatch(/^\/m2\/.*\.jar$/);
  expect(readdirSync(join(dir, 'cache', 'drover'))).toEqual([]);
  server.close();
});

test('every file of a release is named once, and by a whole sum', () => {
  const names = apacheJars.map(jarName);

  expect(new Set(names).size).toBe(names.length);
  expect(apacheJars.every(({ sha256 }) => /^[0-9a-f]{64}$/.test(sha256))).toBe(true);
  expect(jarPath(apacheJars[0]!)).toBe('org/apache/zookeeper/zookeeper/3.9.5/zookeeper-3.9.5.jar');
});
