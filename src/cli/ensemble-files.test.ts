import { expect, test } from 'vitest';
import { composeFile, connectionString, membersOf, systemdUnit, zooCfg } from './ensemble-files.ts';

const folders = { data: '/d', log: '/l' };

test('a zoo.cfg has what every guide names', () => {
  const members = membersOf('zoo1,zoo2,zoo3');

  const text = zooCfg(members[1]!, members, folders, { tickTime: '3000', snapCount: '5' });

  for (const line of [
    'tickTime=3000',
    'initLimit=10',
    'syncLimit=5',
    'dataDir=/d',
    'dataLogDir=/l',
    'clientPort=2181',
    'snapCount=5',
    'server.1=zoo1:2888:3888',
    'server.3=zoo3:2888:3888',
  ]) {
    expect(text.split('\n')).toContain(line);
  }
  expect(text).not.toContain('clientPortAddress');
});

test('what follows from other options can not be set, nor can a line be smuggled in', () => {
  const members = membersOf('zoo1');
  const set = (settings: Record<string, string>) => () =>
    zooCfg(members[0]!, members, folders, settings);

  expect(set({ dataDir: '/other' })).toThrow(/--set dataDir/);
  expect(set({ 'server.9': 'x' })).toThrow(/--set server\.9/);
  expect(set({ a: 'b\nserver.9=evil:1:2' })).toThrow(/one line/);
});

test.each(['', 'a b', 'zoo1:0', 'zoo1:99999', 'zoo1;rm', 'a,a'])(
  '%j is no list of hosts',
  (text) => {
    expect(() => membersOf(text)).toThrow(/--hosts/);
  },
);

test('hosts may have ports, and may be IPv6 addresses', () => {
  const members = membersOf('zoo1:2182,[::2]');

  expect(connectionString(members)).toBe('zoo1:2182,[::2]:2181');
  expect(zooCfg(members[0]!, members, folders)).toContain('server.2=[::2]:2888:3888');
});

test('the compose file has a service for each server, on a port of its own', () => {
  const text = composeFile(membersOf('a,b,c'), '3.9.5');

  expect(text.match(/image: zookeeper:3\.9\.5/g)).toHaveLength(3);
  expect(text).toContain('"127.0.0.1:2181:2181"');
  expect(text).toContain('"127.0.0.1:2183:2181"');
  expect(systemdUnit()).toContain('start-foreground');
});
