import { expect, test } from 'vitest';
import { readJaas } from './users.ts';

const digest = 'org.apache.zookeeper.server.auth.DigestLoginModule';
const users = (options: string) =>
  Object.fromEntries(readJaas(`Server { ${digest} required ${options}; };`, 'jaas.conf'));

// Forms like these were put before Apache ZooKeeper 3.9.5, which lets the same people in.
test.each([
  ['user_ann="a" user_bob=plain-Word.1', { ann: 'a', bob: 'plain-Word.1' }],
  ['"user_bob@x.y"="b"', { 'bob@x.y': 'b' }],
  ['user_bob="a\\tb\\"c\\\\d\\101\\4567"', { bob: 'a\tb"c\\dA%67' }],
  ['user_bob = "" / user_no="no"\n debug=true', { bob: '' }],
  ['user_bob="old" user_bob="new"', { bob: 'new' }],
  ['user_bob="p\u00e4\u20acss" /* user_no="no" */', { bob: 'p\u00e4\u20acss' }],
])('the options %j name the users that Java reads there', (options, named) => {
  expect(users(options)).toEqual(named);
});

test('a section may be quoted, a flag is written in any way, and there may be several modules', () => {
  const text = `\ufeff"Client" {};\r\n"Server" { ${digest} Required user_ann="a"; ${digest} SUFFICIENT user_bob="b"; };`;

  expect(Object.fromEntries(readJaas(text, 'jaas.conf'))).toEqual({ ann: 'a', bob: 'b' });
});

// Nor by Java's grammar. With a #, single quotes, a property or no ; Apache was seen not to start.
test.each([
  ['user_ann="a"\n # user_bob="canary"\n', 'line 2: a # begins no comment'],
  ["user_ann='canary'", 'line 1: values stand in double quotes'],
  ['user_ann="can\nary"', 'line 1: a " has no other on its line'],
  ['user_ann=1canary', 'line 1: values of other letters'],
  ['user_ann="a$\x7bcanary}"', 'line 1: a value that names a property of Java'],
  ['user_ann "canary"', 'line 1: = is missing'],
  ['user_ann=;', 'line 1: a value is missing'],
  ['/* canary', 'line 1: a comment has no end'],
])('the options %j are refused, and not shown', (options, why) => {
  expect(() => users(options)).toThrow(`jaas.conf ${why}`);
  expect(() => users(options)).not.toThrow('canary');
});

test.each([
  [`Server { ${digest} required user_ann="a" };`, 'line 1: an option, or ; is missing'],
  [`Server { ${digest} maybe user_ann="a"; };`, 'line 1: something else than required'],
  [`Server { ${digest} required user_ann="a"; }`, 'at its end: ; is missing'],
  [`Server { };\nServer { };`, 'line 2: another section'],
])('%j is no JAAS file', (text, why) => {
  expect(() => readJaas(text, 'jaas.conf')).toThrow(`jaas.conf ${why}`);
});
