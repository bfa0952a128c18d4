/**
 * What one release of Apache ZooKeeper's server is made of, as Maven Central has it: the server with
 * its AdminServer, metrics and snappy. Checked by its sum before it is run; a file that differs is not.
 */

export const apacheVersion = '3.9.5';

export interface Jar {
  readonly group: string;
  readonly artifact: string;
  readonly version: string;
  readonly sha256: string;
}

const netty = '4.1.130.Final';
const jetty = '9.4.58.v20250814';

type Row = readonly [group: string, artifact: string, version: string, sha256: string];

// biome-ignore format: a table is read down its columns
const rows: readonly Row[] = [
  ['org.apache.zookeeper',       'zookeeper',                          apacheVersion, '936d025db1a85f085edea25048c3f5b3de5fc29329c371a10925e3b78b0b38a0'],
  ['org.apache.zookeeper',       'zookeeper-jute',                     apacheVersion, 'abcbc7f9d6c493daa118da6fa3061a201e2c521217526e8535adfb56b629e52a'],
  ['org.apache.yetus',           'audience-annotations',               '0.12.0',      'ffb101fc066360ff3c77457c927fd7967fb096a6ee9e046ab7071447d8208efc'],
  ['commons-cli',                'commons-cli',                        '1.5.0',       'bc8bb01fc0fad250385706e20f927ddcff6173f6339b387dc879237752567ac6'],
  ['commons-io',                 'commons-io',                         '2.17.0',      '4aa4ca48f3dfd30b78220b7881d8cb93eac4093ec94361b6befa9487998a550b'],
  ['com.fasterxml.jackson.core', 'jackson-annotations',                '2.15.2',      '04e21f94dcfee4b078fa5a5f53047b785aaba69d19de392f616e7a7fe5d3882f'],
  ['com.fasterxml.jackson.core', 'jackson-core',                       '2.15.2',      '303c99e82b1faa91a0bae5d8fbeb56f7e2adf9b526a900dd723bf140d62bd4b4'],
  ['com.fasterxml.jackson.core', 'jackson-databind',                   '2.15.2',      '0eb2fdad6e40ab8832a78c9b22f58196dd970594e8d3d5a26ead87847c4f3a96'],
  ['javax.servlet',              'javax.servlet-api',                  '3.1.0',       'af456b2dd41c4e82cf54f3e743bc678973d9fe35bd4d3071fa05c7e5333b8482'],
  ['org.eclipse.jetty',          'jetty-http',                         jetty,         '8f49b8583fc8dbbfe3a0ba80a04c97df64ebabca2981b56ee403c989aba9d4da'],
  ['org.eclipse.jetty',          'jetty-io',                           jetty,         'f55b2cc7c05244fd7b1773e99979b740002b0186e45b8a688243d89c7006fe21'],
  ['org.eclipse.jetty',          'jetty-security',                     jetty,         '301548ebf008551a3a4312b04df0ea0468acc2780f863b83cc9cf0d668e62252'],
  ['org.eclipse.jetty',          'jetty-server',                       jetty,         '608dbd3e1c4184374f02c70704e5d1c9daaded45e6a31d07824f40dac6083ba9'],
  ['org.eclipse.jetty',          'jetty-servlet',                      jetty,         '1c6bb17326147e642c8a41e4657b32bca5057c8958db4da770d09c0904aefcff'],
  ['org.eclipse.jetty',          'jetty-util',                         jetty,         '8d591679d318d20c8fb2b1e83900562b3c4571ff7a189696be700293e0204146'],
  ['org.eclipse.jetty',          'jetty-util-ajax',                    jetty,         '185430a2eafcdffba18204dbf51cb18436ab4ca09b74d97c1dc13abbadd9704b'],
  ['io.dropwizard.metrics',      'metrics-core',                       '4.1.12.1',    'cec34936faa625039f4e46123eccaa10a9eb9d9a40c6075830cd81330e259cf9'],
  ['io.netty',                   'netty-buffer',                       netty,         '00a522b67ea35cb7b4dd9cf27f85c6c58f5e306785aa045302e5f6b2d4944a87'],
  ['io.netty',                   'netty-codec',                        netty,         '52636bc29bd62120b97bbe5d1d21eab9b1cb2bef8efbb54d2221c5f3fa08d8cd'],
  ['io.netty',                   'netty-common',                       netty,         '53921f28dd5a352b1bed0e1cbcc54d013dc60ffebeae9b2b1e53eabef317e581'],
  ['io.netty',                   'netty-handler',                      netty,         '98c78ec187ca30a4b9775bf6f632f5c9929db6bf06a60e6971f945813880ca0f'],
  ['io.netty',                   'netty-resolver',                     netty,         '48c5b218a89d184e1b601d46433957f515fcefdb4464182b1348bce4f5a18f35'],
  ['io.netty',                   'netty-transport',                    netty,         '1bf573266d271f856705a9984d25449c56a1d73c02a16af12033ceccfe555dbb'],
  ['io.netty',                   'netty-transport-classes-epoll',      netty,         '1c352508d70aca1ccc3068daac907ad1e9d8dc68b07148d57426730bf0d0c8b6'],
  ['io.netty',                   'netty-transport-native-unix-common', netty,         'cf5efc4168597d7cd14695b469418cac2a1134533f9a0c82ef0538d796fd39e1'],
  ['org.slf4j',                  'slf4j-api',                          '2.0.13',      'e7c2a48e8515ba1f49fa637d57b4e2f590b3f5bd97407ac699c3aa5efb1204a9'],
  ['org.slf4j',                  'slf4j-simple',                       '2.0.13',      '3153fe1d689cffb94f1530b58470c306685ba68844de8857116e3b6ebb81d9f7'],
  ['org.xerial.snappy',          'snappy-java',                        '1.1.10.5',    '0f3f1857ed33116583f480b4df5c0218836c47bfbc9c6221c0d73f356decf37b'],
];

export const apacheJars: readonly Jar[] = rows.map(([group, artifact, version, sha256]) => ({
  group,
  artifact,
  version,
  sha256,
}));

export function jarName({ artifact, version }: Jar): string {
  return `${artifact}-${version}.jar`;
}

/** Where it is below the root of a repository of Maven's layout. */
export function jarPath(jar: Jar): string {
  const { group, artifact, version } = jar;
  return `${group.replaceAll('.', '/')}/${artifact}/${version}/${jarName(jar)}`;
}
