import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { DigestMd5Client } from '../protocol/index.ts';
import { readConfig, variableOf } from './config.ts';
import { appliedKeys, inertKeys, refusedKeys } from './config-keys.ts';
import { optionsOf, wantsAdmin } from './config-options.ts';
import type { Connection } from './connection.ts';
import { defaultLimits, type LimitName, limitDefaultText, limitsOf } from './limits.ts';
import { readProperties } from './properties.ts';
import { readJaas, readUsers } from './users.ts';

const file = (text: string) => ({ file: { name: 'zoo.cfg', text } });
const refusal = (text: string) => () => readConfig(file(text));

test.each([
  ['tickTime=2000', false],
  ['admin.serverPort=0', true],
  ['admin.snapshot.enabled=true', true],
  ['admin.commandURL=/c', true],
  ['admin.enableServer=true', true],
  ['admin.enableServer=false\nadmin.serverPort=0', false],
])('with %j the admin server is wanted: %s', (text, wanted) => {
  expect(wantsAdmin(readConfig(file(text)))).toBe(wanted);
});

describe('properties', () => {
  test('are read as Java reads them', () => {
    const text = [
      '\ufeff# a comment',
      '! another',
      '',
      '  a=1',
      'b : 2 ',
      'c 3',
      'long = one, \\',
      '    two',
      'path=C:\\\\data\\u00e4\\t',
      'key\\ with\\=signs=x=y',
      'empty',
    ].join('\r\n');

    expect(readProperties(text)).toEqual([
      { key: 'a', value: '1', line: 4 },
      { key: 'b', value: '2 ', line: 5 },
      { key: 'c', value: '3', line: 6 },
      { key: 'long', value: 'one, two', line: 7 },
      { key: 'path', value: 'C:\\dataä\t', line: 9 },
      { key: 'key with=signs', value: 'x=y', line: 10 },
      { key: 'empty', value: '', line: 11 },
    ]);
  });
});

test.each(['dataDir=C:\\users', 'dataDir=\\\\\\u12', 'da\\u00zztaDir=x'])(
  '%j is refused, as by Java',
  (line) => {
    expect(refusal(`tickTime=2000\n${line}\n`)).toThrow(/^zoo\.cfg line 2: a \\u wants four/);
  },
);

test('a backslash alone on its line begins nothing: a comment behind it is one', () => {
  expect(readProperties('\\\n# a=1\n\\\n\nb=2\n\\\n')).toEqual([{ key: 'b', value: '2', line: 5 }]);
});

test('a backslash that stands twice escapes nothing behind it', () => {
  expect(readConfig(file('dataDir=C:\\\\users')).get('dataDir')).toBe('C:\\users');
});

describe('a zoo.cfg', () => {
  test('of Apache, the sample, is taken with a warning for what has no effect', () => {
    const sample =
      'tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/tmp/zookeeper\nclientPort=2181\n';

    const config = readConfig(file(sample));

    expect(config.get('dataDir')).toBe('/tmp/zookeeper');
    expect(config.warnings).toEqual([
      'zoo.cfg line 2: initLimit has no effect: one server has nobody to wait for; several are what drover ensemble starts',
      'zoo.cfg line 3: syncLimit has no effect: one server has nobody to wait for; several are what drover ensemble starts',
    ]);
  });

  test('of an ensemble is refused, wherever the line stands', () => {
    for (const line of [
      ...['server.1=a:1:2\nserver.2=b:1:2', 'group.1=1:2', 'weight.1=1', 'dynamicConfigFile=x'],
      ...['server.1=a:1:2:observer', 'server.1=a:1:2\nstandaloneEnabled=false'],
    ]) {
      expect(refusal(`tickTime=2000\n${line}\n`)).toThrow(/zoo\.cfg line [23]: .* drover ensemble/);
    }
  });

  test('with one server alone is of a server that runs by itself, as with Apache', () => {
    const config = readConfig(file('server.1=zoo1:2888:3888\nclientPort=2191\n'));

    expect(config.get('clientPort')).toBe(2191);
    expect(config.warnings).toEqual([
      'zoo.cfg line 1: server.1 is the only server, so it runs by itself',
    ]);
  });

  test.each([
    ['server.1=zoo1:2888:3888;2191', '1\n', 2191, '127.0.0.1'],
    ['server.1=zoo1:2888:3888:participant;127.0.0.2:2191', '1', 2191, '127.0.0.2'],
    ['server.1=zoo1:2888:3888;[::1]:2191', '1', 2191, '::1'],
    ['server.1=zoo1:2888:3888;2191', '2', 2181, '127.0.0.1'],
    ['server.1=zoo1:2888:3888;2191', undefined, 2181, '127.0.0.1'],
  ])('%j beside the myid %j listens on port %i of %s', (line, id, port, host) => {
    const config = readConfig({
      ...file(`dataDir=/data\n${line}\n`),
      myid: (dataDir) => (dataDir === '/data' ? id : undefined),
    });

    expect([config.get('clientPort'), config.get('clientPortAddress')]).toEqual([port, host]);
  });

  test('whose server has its clients elsewhere than the file says is refused', () => {
    const text = 'clientPort=2181\nserver.1=zoo1:2888:3888;2191\n';
    expect(() => readConfig({ ...file(text), myid: () => '1' })).toThrow(
      'zoo.cfg line 2: server.1 has its clients at 2191, and zoo.cfg line 1 says clientPort=2181; take one of them out',
    );
    expect(() => readConfig({ ...file('server.1=a:1:2;x'), myid: () => '1' })).toThrow(
      'zoo.cfg line 1: server.1 has no port behind its ;',
    );
  });

  test('with the port of a server in it keeps to the address that is safe to listen on', () => {
    const text = 'server.1=zoo1:2888:3888;0.0.0.0:2181';
    expect(() => optionsOf(readConfig({ ...file(text), myid: () => '1' }))).toThrow(
      '--insecure-bind',
    );
  });

  test('with a key that nobody knows is refused, and the nearest one named', () => {
    expect(refusal('dataDri=x')).toThrow('there is no key "dataDri"; is dataDir meant?');
    expect(refusal('maxclientcnxns=1')).toThrow('is maxClientCnxns meant?');
    expect(refusal('completely.other.thing=1')).toThrow(
      /^zoo\.cfg line 1: there is no key "completely\.other\.thing"$/,
    );
    expect(refusal('__proto__=1')).toThrow('there is no key "__proto__"');
    expect(refusal('---=1')).toThrow(/there is no key "---"$/);
  });

  test.each([
    ['port', 'clientPort'],
    ['timeTick', 'tickTime'],
    ['sessionTimeoutMax', 'maxSessionTimeout'],
    ['snapRetainCount', 'autopurge.snapRetainCount'],
    ['purgeInterval', 'autopurge.purgeInterval'],
    ['serverPort', 'admin.serverPort'],
    ['data', 'dataDir'],
  ])('with %s, the words of %s but not its name, is told so', (key, meant) => {
    expect(refusal(`${key}=1`)).toThrow(`there is no key "${key}"; is ${meant} meant?`);
  });

  test('that keeps fewer snapshots than a way back needs is told how many are kept', () => {
    expect(readConfig(file('autopurge.snapRetainCount=1')).warnings).toEqual([
      'zoo.cfg line 1: autopurge.snapRetainCount is 3, as fewer leave no good way back',
    ]);
    expect(readConfig(file('autopurge.snapRetainCount=3')).warnings).toEqual([]);
  });

  test('with a value that can not be meant is refused by its line', () => {
    expect(refusal('clientPort=http')).toThrow('clientPort has to be a whole number');
    expect(refusal('clientPort=70000')).toThrow('clientPort has to be from 0 to 65535');
    expect(refusal('znode.container.checkIntervalMs=0')).toThrow('has to be from 1 to');
    expect(refusal('enforceQuota=maybe')).toThrow('enforceQuota has to be true or false');
    expect(refusal('minSessionTimeout=9000\nmaxSessionTimeout=8000')).toThrow(
      'minSessionTimeout must not be larger',
    );
  });

  test('answers the words that our own tools ask for where only this machine can connect', () => {
    const words = (text: string) => optionsOf(readConfig(file(text))).fourLetterWords;

    for (const word of ['srvr', 'mntr', 'cons', 'isro']) expect(words('')).toContain(word);
    expect(words('4lw.commands.whitelist=ruok')).toBe('ruok');
    expect(words('clientPortAddress=0.0.0.0\ndrover.insecureBind=true')).toBe('srvr');
  });

  test('says what the disk may take, whether digest is a scheme, and who may fetch a snapshot', () => {
    const config = readConfig(
      file(
        'fsync.warningthresholdms=50\nDigestAuthenticationProvider.enabled=false\nadmin.snapshot.enabled=true\n',
      ),
    );

    expect(config.warnings).toEqual([]);
    expect(optionsOf(config)).toMatchObject({ slowAppendMs: 50, digestSchemeEnabled: false });
    expect(config.get('admin.snapshot.enabled')).toBe(true);
    expect(optionsOf(readConfig(file('')))).toMatchObject({
      ...{ slowAppendMs: 1_000, digestSchemeEnabled: true },
    });
    const nobody =
      'enforce.auth.enabled=true\nenforce.auth.schemes=digest\nDigestAuthenticationProvider.enabled=false';
    expect(() => optionsOf(readConfig(file(nobody)))).toThrow(/lets nobody in/);
  });

  test.each([
    ...[
      'forceSnapshotSync',
      'snapshotSizeFactor',
      'observerMaster.sizeLimit',
      'closeSessionTxn.enabled',
    ],
    ...['pathStats.enabled', 'jmx.log4j.disable', 'kinit', 'jaasLoginRenew', 'sasl.client'],
    ...['clientCnxnSocket', 'intBufferStartingSizeBytes', 'admin.httpVersion', 'letAnySaslUserDoX'],
  ])('with %s, which the manual of Apache does not list, is taken with a warning', (key) => {
    expect(readConfig(file(`${key}=1`)).warnings).toEqual([
      expect.stringContaining(`zoo.cfg line 1: ${key} has no effect: `),
    ]);
  });

  test('that asks for protection which is not there is refused', () => {
    for (const line of ['ssl.crl=true', 'ssl.ocsp=true', 'client.portUnification=true']) {
      expect(refusal(line)).toThrow("can't be had");
    }
    expect(refusal('requireClientAuthScheme=sasl')).toThrow('sessionRequireClientSASLAuth=true');
    expect(readConfig(file('ssl.crl=false')).warnings).toEqual([]);
  });
});

describe('sources', () => {
  test('win over each other in their order', () => {
    const all = {
      ...file('tickTime=1\nsnapCount=1000\nmaxClientCnxns=1\nmaxCnxns=1'),
      environment: { DROVER_TICK_TIME: '2', DROVER_SNAP_COUNT: '2000', DROVER_MAX_CNXNS: '2' },
      javaArguments: ['zookeeper.tickTime=3', 'zookeeper.snapCount=3000'],
      flags: { tickTime: '4' },
    };

    const config = readConfig(all);

    expect(config.get('tickTime')).toBe(4);
    expect(config.get('snapCount')).toBe(3000);
    expect(config.get('maxCnxns')).toBe(2);
    expect(config.get('maxClientCnxns')).toBe(1);
    expect(config.get('preAllocSize')).toBe(65_536);
  });

  test('of Java have their own names for some keys', () => {
    const config = readConfig({
      javaArguments: [
        'jute.maxbuffer=0x200000',
        'java.security.auth.login.config=jaas.conf',
        'x.y=1',
      ],
    });

    expect(config.get('jute.maxbuffer')).toBe(2 ** 21);
    expect(config.get('login.config')).toBe('jaas.conf');
    expect(config.warnings).toEqual(["-Dx.y is no property of ZooKeeper's"]);
  });

  test('of Java may lack the prefix where Apache reads them without it', () => {
    const config = readConfig({
      javaArguments: ['fsync.warningthresholdms=50', 'readonlymode.enabled=true'],
    });

    expect(config.get('fsync.warningthresholdms')).toBe(50);
    expect(config.get('readonlymode.enabled')).toBe(true);
    expect(config.warnings).toEqual([]);
  });

  test('a variable that is nearly one of ours is asked about', () => {
    const { warnings } = readConfig({
      environment: { DROVER_CLIENT_PROT: '1', DROVER_FOO_BAR: 'x' },
    });

    expect(warnings).toEqual([
      'DROVER_CLIENT_PROT is no variable of ours; is DROVER_CLIENT_PORT meant?',
    ]);
  });

  test('a variable that Kubernetes sets for a service is told, and not taken for a port', () => {
    const config = readConfig({
      environment: { DROVER_CLIENT_PORT: 'tcp://10.43.0.5:2181', DROVER_TICK_TIME: '500' },
    });

    expect(config.get('clientPort')).toBe(2181);
    expect(config.get('tickTime')).toBe(500);
    expect(config.warnings).toEqual([
      'DROVER_CLIENT_PORT=tcp://10.43.0.5:2181 is the address of a service, and not taken for clientPort',
    ]);
  });

  test('every key has a variable of its own', () => {
    const variables = Object.keys(appliedKeys).map(variableOf);

    expect(new Set(variables).size).toBe(variables.length);
  });

  test('what is secret is not shown', () => {
    const text =
      'ssl.keyStore.password=canary\nDigestAuthenticationProvider.superDigest=super:canary\ntickTime=5';

    expect(readConfig(file(text)).toString()).toBe(
      'ssl.keyStore.password=***\nDigestAuthenticationProvider.superDigest=***\ntickTime=5\n',
    );
  });

  test('nor is what stands behind a name that lacks its =', () => {
    const said = (javaArgument: string): string => {
      try {
        return readConfig({ javaArguments: [javaArgument] }).warnings.join();
      } catch (error) {
        return (error as Error).message;
      }
    };
    const colon = said('zookeeper.ssl.keyStore.password:canary');

    expect(colon).toBe(
      '-Dzookeeper.ssl.keyStore.password:…: there is no key "ssl.keyStore.password:…"; is ssl.keyStore.password meant?',
    );
    expect(said('ssl.keyStore.password canary')).toBe(
      "-Dssl.keyStore.password … is no property of ZooKeeper's",
    );
    expect(said('zookeeper.ssl.quorum.keyStore.password:canary')).not.toContain('canary');
    expect(refusal('superUser\\=canary')).toThrow(
      'zoo.cfg line 1: there is no key "superUser=…"; is superUser meant?',
    );
  });
});

describe('options', () => {
  const options = (text: string) => optionsOf(readConfig(file(text)));

  test('have the defaults of Apache, but for the address and what it allows', () => {
    expect(options('dataDir=d')).toMatchObject({
      ...{ host: '127.0.0.1', port: 2181, dataDir: 'd', tickTimeMs: 3_000 },
      preallocBytes: 64 * 1024 * 1024,
      fourLetterWords: 'srvr, mntr, cons, dump, wchs, wchp, wchc, ruok, isro',
      limits: {
        connectionsPerAddressMax: 60,
        connectionsMax: defaultLimits.connectionsMax,
        frameBytesMax: 0xfffff,
      },
    });
  });

  test('have the ticks of Apache where there is a file, and else those of its sample', () => {
    expect(options('')).toMatchObject({ tickTimeMs: 3_000 });
    expect(optionsOf(readConfig({}))).toMatchObject({ tickTimeMs: 2_000 });
    expect(optionsOf(readConfig({ flags: { tickTime: '7' } }))).toMatchObject({ tickTimeMs: 7 });
  });

  test('say nothing where nothing was said', () => {
    expect(Object.values(options('tickTime=1'))).not.toContain(undefined);
    expect(options('')).not.toHaveProperty('minSessionTimeoutMs');
    // 100,000, and more for a large tree.
    expect(options('')).not.toHaveProperty('snapCount');
    expect(options('snapCount=1000')).toMatchObject({ snapCount: 1_000 });
    expect(options('snapSizeLimitInKb=7')).toMatchObject({ snapLogBytes: 7 * 1024 });
  });

  test('take every limit', () => {
    const lines = Object.keys(defaultLimits).map((name, i) => `drover.limits.${name}=${i + 1}`);

    const { limits } = options(lines.join('\n'));

    expect(Object.values(limits!).sort((a, b) => a! - b!)).toEqual(
      Object.keys(defaultLimits).map((_, i) => i + 1),
    );
  });

  test('take a number of links below 0 for no limit, as Apache does, and no other limit', () => {
    const { limits } = optionsOf(readConfig(file('maxClientCnxns=-1\nmaxCnxns=-1\n')));

    expect(limitsOf(limits)).toMatchObject({
      connectionsPerAddressMax: Infinity,
      connectionsMax: Infinity,
    });
    expect(refusal('drover.limits.sessionsMax=-1')).toThrow(
      'zoo.cfg line 1: drover.limits.sessionsMax has to be from 0',
    );
  });

  test('refuse to let everybody in by accident', () => {
    expect(() => options('clientPortAddress=0.0.0.0')).toThrow('--insecure-bind');
    expect(options('clientPortAddress=0.0.0.0\ndrover.insecureBind=true')).toMatchObject({
      host: '0.0.0.0',
    });
    expect(
      options('clientPortAddress=::\nenforce.auth.enabled=true\nenforce.auth.schemes=x509'),
    ).toMatchObject({ host: '::', requiredSchemes: ['x509'] });
  });

  test.each(['digest', 'digest,x509', 'sasl,digest'])(
    'do not take %s for authentication: any name and password is a digest id',
    (schemes) => {
      const folder = mkdtempSync(join(tmpdir(), 'drover-users-'));
      onTestFinished(() => rmSync(folder, { recursive: true }));
      writeFileSync(join(folder, 'users'), 'ann: secret\n');
      const open = [
        ...['clientPortAddress=0.0.0.0', `drover.usersFile=${join(folder, 'users')}`],
        ...['enforce.auth.enabled=true', `enforce.auth.schemes=${schemes}`],
      ].join('\n');
      expect(() => options(open)).toThrow(
        'listening on 0.0.0.0 would let in every client that can reach it',
      );
      expect(options(`${open}\ndrover.insecureBind=true`)).toMatchObject({ host: '0.0.0.0' });
    },
  );

  test.each([
    ['admin.serverAddress=0.0.0.0', 'the admin server on 0.0.0.0'],
    ['admin.enableServer=true\nadmin.serverAddress=10.0.0.1', 'the admin server on 10.0.0.1'],
    [
      'metricsProvider.className=PrometheusMetricsProvider\nmetricsProvider.httpHost=::',
      'metrics on ::',
    ],
  ])('refuse to answer HTTP beyond this machine by accident: %j', (text, what) => {
    expect(() => options(text)).toThrow(`${what} would answer everybody who can reach it`);
    expect(() => options(text)).toThrow('--insecure-bind');
    options(`${text}\ndrover.insecureBind=true`);
    options(`${text}\nadmin.enableServer=false\nmetricsProvider.className=`);
  });

  test('do not take an address, which everybody has, for a proof of who somebody is', () => {
    const open = 'clientPortAddress=0.0.0.0\nenforce.auth.enabled=true\nenforce.auth.schemes=';
    expect(() => options(`${open}ip`)).toThrow('--insecure-bind');
    expect(() => options(`${open}digest,ip`)).toThrow('--insecure-bind');
    expect(options(`${open}ip\ndrover.insecureBind=true`)).toMatchObject({
      requiredSchemes: ['ip'],
    });
  });

  test('take an IPv6 address in brackets, too, as Java does', () => {
    expect(options('clientPortAddress=[::1]')).toMatchObject({ host: '::1' });
    expect(readConfig(file('admin.serverAddress=[::]')).get('admin.serverAddress')).toBe('::');
    expect(() => options('clientPortAddress=[::]')).toThrow('listening on :: would');
  });

  test('refuse an address for TLS where nobody would listen', () => {
    expect(() => options('secureClientPortAddress=127.0.0.1')).toThrow(
      /^zoo\.cfg line 1: secureClientPortAddress without secureClientPort/,
    );
  });

  test('refuse authentication that could never succeed', () => {
    expect(() => options('sessionRequireClientSASLAuth=true')).toThrow('SASL users');
    expect(() => options('enforce.auth.enabled=true')).toThrow('needs enforce.auth.schemes');
    expect(() => options('authProvider.1=com.example.Mine')).toThrow("a class of Java's");
    for (const known of [
      'metrics.prometheus.PrometheusMetricsProvider',
      'metrics.impl.NullMetricsProvider',
    ]) {
      options(`metricsProvider.className=org.apache.zookeeper.${known}`);
    }
    expect(() => options('metricsProvider.className=com.example.Mine')).toThrow(
      "a class of Java's",
    );
  });
});

describe('as with Apache', () => {
  const told = (text: string) => {
    const warnings: string[] = [];
    const options = optionsOf(readConfig(file(text)), {
      warn: (sentence) => warnings.push(sentence),
    });
    return { ...options, warnings };
  };
  const provider = (name: string) =>
    `authProvider.1=org.apache.zookeeper.server.auth.${name}AuthenticationProvider`;
  const users = (text: string) => {
    const folder = mkdtempSync(join(tmpdir(), 'drover-users-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'jaas.conf'), text);
    return `login.config=${join(folder, 'jaas.conf')}`;
  };

  test.each([
    ['SASL without users', () => provider('SASL')],
    ['an empty JAAS file', () => users('')],
    ['a Server section without users', () => users('Server { x.DigestLoginModule required; };')],
  ])('%s starts with a warning and lets nobody in by SASL', (_, text) => {
    const { sasl, warnings } = told(text());

    expect(warnings).toEqual([
      expect.stringMatching(/names no SASL user, so nobody can authenticate by SASL; name some/),
    ]);
    const client = new DigestMd5Client({ username: 'ann', password: '' });
    const link = {} as Connection;
    const { token } = sasl!.step(link, null)!;
    expect(sasl!.step(link, client.step(token!))).toBeNull();
  });

  test('every superUser.… is a super user, beside superUser', () => {
    const config = readConfig({
      ...file('superUser=ann\nsuperUser.1=bob\n'),
      javaArguments: ['zookeeper.superUser.x=carl', 'zookeeper.superUser.1=dora'],
    });

    expect(config.superUsers).toEqual(['ann', 'dora', 'carl']);
    expect(config.warnings).toEqual([]);
  });

  test('readonlymode.enabled=true puts isro on the whitelist, and does nothing else', () => {
    const words = (enabled: boolean) =>
      told(`4lw.commands.whitelist=srvr\nreadonlymode.enabled=${enabled}`).fourLetterWords;

    expect(words(true)).toBe('srvr,isro');
    expect(words(false)).toBe('srvr');
  });

  test('nio.sessionlessCnxnTimeout is how long a connection may take to ask for a session', () => {
    expect(told('nio.sessionlessCnxnTimeout=2500').limits).toMatchObject({
      handshakeTimeoutMs: 2_500,
    });
    expect(
      told('nio.sessionlessCnxnTimeout=2500\ndrover.limits.handshakeTimeoutMs=7').limits,
    ).toMatchObject({ handshakeTimeoutMs: 7 });
    expect(refusal('nio.sessionlessCnxnTimeout=0')).toThrow('has to be from 1 to 2147483647');
  });

  test('ensembleAuthName holds where the provider for it is named', () => {
    const named = `${provider('Ensemble')}\nensembleAuthName=a, b`;
    expect(told(named)).toMatchObject({ ensembleNames: ['a', 'b'], warnings: [] });
    expect(told(provider('Ensemble')).ensembleNames).toEqual([]);
    expect(told('ensembleAuthName=a').warnings).toEqual([
      expect.stringContaining('ensembleAuthName has no effect without authProvider.ensemble='),
    ]);
    expect(told('').ensembleNames).toBeUndefined();
  });

  test('a jute.maxbuffer below 1024 is refused with what it may be, which the page says too', () => {
    expect(refusal('jute.maxbuffer=100')).toThrow(
      'zoo.cfg line 1: jute.maxbuffer has to be from 1024 to 2147483647, and is 100',
    );
    expect(appliedKeys['jute.maxbuffer'].about).toContain('from 1024 to 2147483647');
  });
});

test.each(['dataDir=', 'dataLogDir='])('%j is refused, and not the current folder', (line) => {
  expect(refusal(`clientPort=0\n${line}\n`)).toThrow(/^zoo\.cfg line 2: \w+ is empty$/);
});

test('an empty address is loopback, as in Java, and not all there are', () => {
  const environment = { DROVER_CLIENT_PORT_ADDRESS: '', DROVER_METRICS_PROVIDER_HTTP_HOST: '' };
  const text = 'admin.serverAddress=\nsecureClientPortAddress= \nsecureClientPort=1\n';

  const config = readConfig({ ...file(text), environment });

  for (const key of [
    ...(['clientPortAddress', 'secureClientPortAddress'] as const),
    ...(['admin.serverAddress', 'metricsProvider.httpHost'] as const),
  ]) {
    expect([key, config.get(key)]).toEqual([key, '127.0.0.1']);
  }
});

test('an ensemble is refused by whatever names it', () => {
  const why = /: server\.1 describes an ensemble, .* drover ensemble/;
  expect(() => readConfig({ flags: { 'server.1': 'a:1:2' } })).toThrow(why);
  expect(() => readConfig({ javaArguments: ['zookeeper.server.1=a:1:2'] })).toThrow(why);
});

test.each([
  ...['minSessionTimeout=3000000000\nmaxSessionTimeout=4000000000', 'maxSessionTimeout=2147483648'],
  ...['minSessionTimeout=-5\nmaxSessionTimeout=-3', 'admin.commandURL=commands'],
])('%j is refused, as by Apache or since no client could be told', (text) => {
  expect(refusal(text)).toThrow(/^zoo\.cfg line [12]: .* has to be/);
});

test('permissions are left unchecked by the one word that Apache takes, and by no other', () => {
  const skips = (value: string) => optionsOf(readConfig(file(`skipACL=${value}`))).skipAcl;

  expect(['yes', 'YES', 'Yes', 'true', ''].map(skips)).toEqual([true, false, false, false, false]);
});

describe('users', () => {
  test('come from the Server section of a JAAS file', () => {
    const jaas = `
      // Client { x required user_no="no"; };
      Client { org.apache.zookeeper.server.auth.DigestLoginModule required username="c" password="d"; };
      Server {
        org.apache.zookeeper.server.auth.DigestLoginModule required
        user_super="adminsecret" /* who may all */
        user_bob="bob\\"s}secret//";
      };`;

    expect(readJaas(jaas, 'jaas.conf')).toEqual(
      new Map([
        ['super', 'adminsecret'],
        ['bob', 'bob"s}secret//'],
      ]),
    );
    expect(() => readJaas('Client { };', 'jaas.conf')).toThrow('jaas.conf has no Server section');
    expect(() =>
      readJaas('Server { com.sun.security.auth.module.Krb5LoginModule required; };', 'j'),
    ).toThrow('only DigestLoginModule');
  });

  test('come from the section that is named, and super may have a password elsewhere', () => {
    const folder = mkdtempSync(join(tmpdir(), 'drover-jaas-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const jaas = join(folder, 'jaas.conf');
    const module = 'org.apache.zookeeper.server.auth.DigestLoginModule required';
    writeFileSync(
      jaas,
      `Server { ${module} user_a="1"; };\nOther { ${module} user_super="2"; };\n`,
    );
    const javaArguments = [
      ...[`java.security.auth.login.config=${jaas}`, 'zookeeper.sasl.serverconfig=Other'],
      'zookeeper.SASLAuthenticationProvider.superPassword=canary',
    ];
    const config = readConfig({ javaArguments });
    const { sasl } = optionsOf(config);

    expect(String(config)).not.toContain('canary');
    const client = new DigestMd5Client({ username: 'super', password: 'canary' });
    const link = {} as Connection;
    const { token } = sasl!.step(link, null)!;
    expect(sasl!.step(link, client.step(token!))!.ids).toEqual([{ scheme: 'sasl', id: 'super' }]);
  });

  test('or from a list of our own, whose mistakes are told without its secrets', () => {
    expect(readUsers('# ours\n\nann: a secret \nbob:b:c\n', 'users')).toEqual(
      new Map([
        ['ann', 'a secret'],
        ['bob', 'b:c'],
      ]),
    );
    expect(() => readUsers('ann canary\n', 'users')).toThrow(
      /^users line 1: name: password is wanted$/,
    );
  });
});

test('docs/configuration.md lists every key as the table has it', () => {
  const page = readFileSync(resolve(import.meta.dirname, '../../docs/configuration.md'), 'utf8');

  for (const [key, { kind, about }] of Object.entries(appliedKeys)) {
    expect(page, key).toContain(`| \`${key}\` |`);
    expect(page, key).toContain(`${kind} | `);
    expect(page, key).toContain(about.replaceAll('|', '\\|'));
  }
  for (const key of [...Object.keys(inertKeys), ...Object.keys(refusedKeys)]) {
    expect(page, key).toContain(`\`${key}\``);
  }
});

test('docs/server.md lists every limit with its default', () => {
  const page = readFileSync(resolve(import.meta.dirname, '../../docs/server.md'), 'utf8');

  for (const name of Object.keys(defaultLimits) as LimitName[]) {
    expect(page).toContain(`| \`${name}\` | ${limitDefaultText(name)} |`);
  }
});
