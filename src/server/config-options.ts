/**
 * From a configuration to what `startServer` takes. Reads the files that the configuration names
 * (keys, users), touches nothing else.
 */

import { getHashes } from 'node:crypto';
import { readPlainFileSync } from '../support/index.ts';
import { isLoopback } from './addresses.ts';
import type { ExtraScheme } from './auth.ts';
import { ConfigError, type ServerConfig } from './config.ts';
import { appliedKeys, type ConfigKey, snapRetainCountMin } from './config-keys.ts';
import { defaultLimits, type LimitName, type Limits } from './limits.ts';
import type { ServerOptions } from './options.ts';
import type { PasswordRule } from './passwords.ts';
import { Sasl } from './sasl.ts';
import { type ReadJavaStore, readTls } from './tls.ts';
import { readJaas, readUsers, type Users } from './users.ts';

export interface OptionHelpers {
  /** Hears of what is odd and does not keep a server from starting. */
  readonly warn?: (sentence: string) => void;
  readonly readJavaStore?: ReadJavaStore | undefined;
}

export function optionsOf(
  config: ServerConfig,
  { warn = () => {}, readJavaStore }: OptionHelpers = {},
): ServerOptions {
  checkMetricsProvider(config);
  checkHttpAddresses(config);
  const sasl = saslOf(config, warn);
  const tls = tlsOf(config, readJavaStore);
  const requiredSchemes = requiredOf(config, sasl !== undefined);
  const extraSchemes: ExtraScheme[] = [];
  if (sasl !== undefined) extraSchemes.push('sasl');
  if (tls !== undefined) extraSchemes.push('x509');
  const options: { readonly [K in keyof ServerOptions]?: ServerOptions[K] | undefined } = {
    ...listening(config, tls, provesWho(requiredSchemes)),
    ...persisting(config),
    sessionPasswords: passwordRule(config),
    tickTimeMs: config.must('tickTime'),
    minSessionTimeoutMs: orUndefined(config.must('minSessionTimeout')),
    maxSessionTimeoutMs: orUndefined(config.must('maxSessionTimeout')),
    extendedTypesEnabled: config.must('extendedTypesEnabled'),
    digestEnabled: config.get('digest.enabled'),
    enforceQuota: config.must('enforceQuota'),
    reconfigEnabled: config.must('reconfigEnabled'),
    fourLetterWords: whitelist(config),
    ensembleNames: ensembleNames(config, warn),
    reapIntervalMs: config.must('znode.container.checkIntervalMs'),
    reapPerMinuteMax: config.must('znode.container.maxPerMinute'),
    reapNeverUsedMs: config.must('znode.container.maxNeverUsedIntervalMs'),
    initialConfig: config.toString(),
    limits: limitsFrom(config),
    superDigest: config.get('DigestAuthenticationProvider.superDigest'),
    digestAlgorithm: digestAlgorithm(config),
    digestSchemeEnabled: config.must('DigestAuthenticationProvider.enabled'),
    slowAppendMs: config.must('fsync.warningthresholdms'),
    x509SuperUser: config.get('X509AuthenticationProvider.superUser'),
    skipAcl: config.must('skipACL') === 'yes', // as Apache: what is not that word checks them
    extraSchemes,
    sasl,
    requiredSchemes,
  };
  // What is not there must not stand there as undefined: a default would be overwritten.
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as ServerOptions;
}

/** Whether the admin server is wanted: it says so, or something is said of what it does. */
export function wantsAdmin(config: ServerConfig): boolean {
  const keys = (Object.keys(appliedKeys) as ConfigKey[]).filter((key) => key.startsWith('admin.'));
  return config.get('admin.enableServer') ?? keys.some((key) => config.isGiven(key));
}

/**
 * The words that `drover status`, `doctor`, `whois` and the console ask for. Where only this machine can
 * connect they are answered without being listed; beyond it Apache's default stands, `srvr` alone.
 */
const ownWords = 'srvr, mntr, cons, dump, wchs, wchp, wchc, ruok, isro';

/** Whether `/metrics` is wanted. */
export function wantsMetrics(config: ServerConfig): boolean {
  return config.get('metricsProvider.className')?.includes('Prometheus') ?? false;
}

/** `drover.allowHosts`, as a list. */
export function allowedHosts(config: ServerConfig): readonly string[] {
  return listed(config.get('drover.allowHosts'));
}

const listed = (text = ''): string[] =>
  text
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '');

/** Neither asks for a password before it tells what clients do, by address and path. */
function checkHttpAddresses(config: ServerConfig): void {
  if (config.must('drover.insecureBind')) return;
  for (const [what, key, isOn] of [
    ['the admin server', 'admin.serverAddress', wantsAdmin(config)],
    ['metrics', 'metricsProvider.httpHost', wantsMetrics(config)],
  ] as const) {
    const host = config.must(key);
    if (!isOn || isLoopback(host)) continue;
    throw new ConfigError(
      `${config.originOf(key)}: ${what} on ${host} would answer everybody who can reach it, without a password; ` +
        `set ${key}=127.0.0.1, or say --insecure-bind`,
    );
  }
}

const orUndefined = (ms: number) => (ms === -1 ? undefined : ms);

/**
 * Schemes whose proof can fail. Every client has an address, and any name and password is a valid `digest`
 * id: a server that asks for one of these lets every client in.
 */
const strongSchemes: readonly string[] = ['sasl', 'x509'];

const provesWho = (schemes: readonly string[] | undefined) =>
  schemes?.every((scheme) => strongSchemes.includes(scheme)) ?? false;

function listening(
  config: ServerConfig,
  tls: ServerOptions['tls'],
  hasAuthentication: boolean,
): ServerOptions {
  const host = config.must('clientPortAddress');
  const secureHost = config.get('secureClientPortAddress') ?? host;
  const isMutual = tls !== undefined && tls.rejectUnauthorized === true;
  const isTlsAlone = tls !== undefined && !config.isGiven('clientPort');
  const mayBind = config.must('drover.insecureBind') || hasAuthentication;
  const exposed = [
    ...(isTlsAlone || isLoopback(host) ? [] : [host]),
    ...(tls === undefined || isMutual || isLoopback(secureHost) ? [] : [secureHost]),
  ];
  if (!mayBind && exposed.length > 0) {
    throw new ConfigError(
      `listening on ${exposed[0]} would let in every client that can reach it: only SASL and mutual TLS prove who a client is; ` +
        'set sessionRequireClientSASLAuth=true or enforce.auth.schemes=sasl, or say --insecure-bind',
    );
  }
  if (tls === undefined) return { host, port: config.must('clientPort') };
  const securePort = config.must('secureClientPort');
  if (isTlsAlone) return { host: secureHost, port: securePort, tls };
  return {
    host,
    port: config.must('clientPort'),
    tls: { ...tls, port: securePort, host: secureHost },
  };
}

function persisting(config: ServerConfig): ServerOptions {
  if (config.must('drover.inMemory')) return { inMemory: true };
  const compression = config.must('snapshot.compression.method');
  if (!['', 'gz'].includes(compression)) {
    throw new ConfigError(`snapshot.compression.method has to be gz or empty, not ${compression}`);
  }
  const intervalHours = config.must('autopurge.purgeInterval');
  return {
    dataDir: config.must('dataDir'),
    dataLogDir: config.get('dataLogDir'),
    snapCount: config.isGiven('snapCount') ? config.must('snapCount') : undefined,
    snapLogBytes: config.must('snapSizeLimitInKb') * 1024,
    preallocBytes: config.must('preAllocSize') * 1024,
    snapshotCompression: compression === 'gz' ? 'gzip' : 'none',
    unsafeNoFsync: config.must('drover.unsafeNoFsync') || config.must('forceSync') === 'no',
    salvage: config.must('drover.salvage'),
    ...(intervalHours <= 0
      ? {}
      : {
          autopurge: {
            retain: Math.max(snapRetainCountMin, config.must('autopurge.snapRetainCount')),
            intervalMs: intervalHours * 3_600_000,
          },
        }),
  };
}

function passwordRule(config: ServerConfig): PasswordRule {
  const said = config.must('drover.sessionPasswords');
  if (said === 'secret' || said === 'apache') return said;
  const origin = config.originOf('drover.sessionPasswords');
  throw new ConfigError(
    `${origin}: drover.sessionPasswords has to be secret or apache, not ${said}`,
  );
}

function limitsFrom(config: ServerConfig): Partial<Limits> {
  const limits: Partial<Record<LimitName, number>> = {
    // Apache takes whatever is below 0 for no limit too.
    connectionsPerAddressMax: Math.max(0, config.must('maxClientCnxns')),
    connectionsMax: Math.max(0, config.must('maxCnxns')),
    frameBytesMax: config.must('jute.maxbuffer'),
    handshakeTimeoutMs: config.must('nio.sessionlessCnxnTimeout'),
  };
  for (const name of Object.keys(defaultLimits) as LimitName[]) {
    const key = `drover.limits.${name}` as const;
    if (config.isGiven(key)) limits[name] = config.must(key);
  }
  return limits;
}

function digestAlgorithm(config: ServerConfig): string {
  const said = config.must('DigestAuthenticationProvider.digestAlg');
  const name = said.toLowerCase().replace(/^sha-/, 'sha');
  if (!getHashes().includes(name)) {
    throw new ConfigError(
      `DigestAuthenticationProvider.digestAlg: ${said} is no algorithm that this Node has`,
    );
  }
  return name;
}

function tlsOf(config: ServerConfig, readJavaStore?: ReadJavaStore): ServerOptions['tls'] {
  if (config.get('secureClientPort') === undefined) return undefined;
  return readTls(config, readJavaStore);
}

const providers: readonly [name: RegExp, scheme: ExtraScheme | 'ensemble' | undefined][] = [
  [/\bSASLAuthenticationProvider$/, 'sasl'],
  [/\bX509AuthenticationProvider$/, 'x509'],
  [/\bEnsembleAuthenticationProvider$/, 'ensemble'],
  [/\b(Digest|IP)AuthenticationProvider$/, undefined],
];

/** With `Prometheus` in it, `/metrics` is told; the others tell nobody. */
const metricsProviders = /Prometheus|\b(Default|Null)MetricsProvider$|^$/;

function checkMetricsProvider(config: ServerConfig): void {
  const className = config.get('metricsProvider.className') ?? '';
  if (metricsProviders.test(className)) return;
  throw new ConfigError(
    `metricsProvider.className: ${className} is a class of Java's; known here is PrometheusMetricsProvider`,
  );
}

/** The schemes that the classes of `authProvider.…` are for. */
function providedSchemes(config: ServerConfig): ReadonlySet<string | undefined> {
  const schemes = new Set<string | undefined>();
  for (const [name, className] of config.authProviders) {
    const known = providers.find(([pattern]) => pattern.test(className));
    if (known === undefined) {
      throw new ConfigError(
        `authProvider.${name}: ${className} is a class of Java's; known here are SASLAuthenticationProvider, X509AuthenticationProvider and EnsembleAuthenticationProvider`,
      );
    }
    schemes.add(known[1]);
  }
  return schemes;
}

/** Undefined: there is no such scheme. Empty: a client may name any. */
function ensembleNames(
  config: ServerConfig,
  warn: (sentence: string) => void,
): readonly string[] | undefined {
  const names = config.get('ensembleAuthName');
  if (providedSchemes(config).has('ensemble')) {
    return names?.split(',').map((name) => name.trim()) ?? [];
  }
  if (names !== undefined) {
    warn(
      `${config.originOf('ensembleAuthName')}: ensembleAuthName has no effect without authProvider.ensemble=org.apache.zookeeper.server.auth.EnsembleAuthenticationProvider`,
    );
  }
  return undefined;
}

function whitelist(config: ServerConfig): string {
  const hosts = [config.must('clientPortAddress'), config.get('secureClientPortAddress')];
  const isLocal = hosts.every((host) => host === undefined || isLoopback(host));
  const isGiven = config.isGiven('4lw.commands.whitelist');
  const words = isLocal && !isGiven ? ownWords : config.must('4lw.commands.whitelist');
  return config.must('readonlymode.enabled') ? `${words},isro` : words;
}

/** Apache starts without users as well, and lets nobody in by SASL. */
function saslOf(config: ServerConfig, warn: (sentence: string) => void): Sasl | undefined {
  const isAsked = providedSchemes(config).has('sasl');
  const users = usersOf(config);
  if (users === undefined && !isAsked) return undefined;
  if (users === undefined || users.size === 0) {
    const where =
      config.get('drover.usersFile') ?? config.get('login.config') ?? 'the configuration';
    warn(
      `${where} names no SASL user, so nobody can authenticate by SASL; name some in a JAAS file (-Djava.security.auth.login.config=jaas.conf), or with --users FILE`,
    );
  }
  return new Sasl({ passwordOf: (name) => users?.get(name), superUser: config.superUsers });
}

function usersOf(config: ServerConfig): Users | undefined {
  const own = config.get('drover.usersFile');
  const jaas = config.get('login.config');
  if (own === undefined && jaas === undefined) return undefined;
  const file = (own ?? jaas)!;
  let text: string;
  try {
    text = readPlainFileSync(file).toString('utf8');
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error';
    throw new ConfigError(`${file} can't be read (${code})`, { cause });
  }
  const users = own !== undefined ? readUsers(text, file) : jaasUsers(config, text, file);
  const superPassword = config.get('SASLAuthenticationProvider.superPassword');
  return superPassword ? new Map([...users, ['super', superPassword]]) : users;
}

/**
 * Apache starts without a Server section and lets nobody in by SASL. A file that holds something, but not
 * that, is more likely a mistake; an empty one says that nobody is meant.
 */
function jaasUsers(config: ServerConfig, text: string, file: string): Users {
  return text.trim() === '' ? new Map() : readJaas(text, file, config.must('sasl.serverconfig'));
}

function requiredOf(config: ServerConfig, hasSasl: boolean): readonly string[] | undefined {
  if (config.must('sessionRequireClientSASLAuth')) {
    if (hasSasl) return ['sasl'];
    throw new ConfigError(
      'sessionRequireClientSASLAuth=true lets nobody in without SASL users: name a JAAS file, or --users FILE',
    );
  }
  if (!config.must('enforce.auth.enabled')) return undefined;
  const schemes = listed(config.get('enforce.auth.schemes'));
  if (schemes.length === 0) {
    throw new ConfigError('enforce.auth.enabled=true needs enforce.auth.schemes');
  }
  const unknown = schemes.find((each) => !['sasl', 'digest', 'x509', 'ip'].includes(each));
  if (unknown !== undefined) {
    throw new ConfigError(`enforce.auth.schemes: there is no scheme ${unknown}`);
  }
  if (schemes.includes('digest') && !config.must('DigestAuthenticationProvider.enabled')) {
    throw new ConfigError(
      'enforce.auth.schemes=digest lets nobody in while DigestAuthenticationProvider.enabled=false',
    );
  }
  if (schemes.includes('sasl') && !hasSasl) {
    throw new ConfigError('enforce.auth.schemes=sasl needs users: a JAAS file, or --users FILE');
  }
  return schemes;
}
