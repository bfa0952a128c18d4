/**
 * What a server is configured with, and where each value came from.
 *
 * In: a zoo.cfg as Apache's is, `-Dzookeeper.…=` arguments, `DROVER_…` variables, flags. Out: values,
 * each checked, and warnings. Flags win over -D, -D over the environment, that over the file, and the
 * file over the defaults. What can't be meant is a `ConfigError`, one sentence that says where.
 */

import { nearest } from '../support/index.ts';
import {
  type AppliedKey,
  appliedKeys,
  authProviderPrefix,
  type ConfigKey,
  ensembleKeys,
  inertKeys,
  inertPrefixes,
  refusedKeys,
  snapRetainCountMin,
  superUserPrefix,
} from './config-keys.ts';
import { defaultLimits, type LimitName } from './limits.ts';
import { type Property, readProperties } from './properties.ts';

export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

export interface ConfigSources {
  /** By key. */
  readonly flags?: Readonly<Record<string, string | undefined>>;
  /** `name=value`, as behind -D. */
  readonly javaArguments?: readonly string[];
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly file?: { readonly name: string; readonly text: string } | undefined;
  /** What the file `myid` in a data directory says, if there is one. */
  readonly myid?: ((dataDir: string) => string | undefined) | undefined;
}

interface Given {
  readonly value: string;
  /** For messages: `zoo.cfg line 3`, `DROVER_CLIENT_PORT`, `--port`. */
  readonly origin: string;
}

type ValueOf<K extends ConfigKey> = (typeof appliedKeys)[K] extends { kind: 'int' }
  ? number
  : (typeof appliedKeys)[K] extends { kind: 'flag' }
    ? boolean
    : (typeof appliedKeys)[K] extends { kind: 'text' | 'address' }
      ? string
      : number;

export class ServerConfig {
  readonly warnings: readonly string[];
  /** Class names by what stands behind `authProvider.`. */
  readonly authProviders: ReadonlyMap<string, string>;
  /** SASL users who may do everything: `superUser`, and `superUser.` with any suffix. */
  readonly superUsers: readonly string[];
  readonly #given: ReadonlyMap<string, Given>;
  readonly #hasFile: boolean;

  constructor(
    given: ReadonlyMap<string, Given>,
    authProviders: ReadonlyMap<string, string>,
    superUsers: readonly string[],
    warnings: readonly string[],
    hasFile: boolean,
  ) {
    this.#given = given;
    this.#hasFile = hasFile;
    this.authProviders = authProviders;
    const first = this.get('superUser');
    this.superUsers = [...(first === undefined ? [] : [first]), ...superUsers];
    this.warnings = warnings;
  }

  /** The value that somebody gave, or the default, or undefined. */
  get<K extends ConfigKey>(key: K): ValueOf<K> | undefined {
    const spec: AppliedKey = appliedKeys[key];
    const given = this.#given.get(key);
    const otherwise = (this.#hasFile ? spec.fileDefault : undefined) ?? spec.default;
    const text = given?.value ?? otherwise;
    return text === undefined ? undefined : (parsed(key, spec, text, given?.origin) as ValueOf<K>);
  }

  /** As `get`, for keys that have a default. */
  must<K extends ConfigKey>(key: K): ValueOf<K> {
    const value = this.get(key);
    if (value === undefined) throw new ConfigError(`${key} is missing`);
    return value;
  }

  isGiven(key: ConfigKey): boolean {
    return this.#given.has(key);
  }

  /** For messages. */
  originOf(key: ConfigKey): string {
    return this.#given.get(key)?.origin ?? 'the default';
  }

  /** All that was given, a line each, with what is secret left out. */
  toString(): string {
    const lines = [...this.#given].map(([key, { value }]) => {
      const isSecret = (appliedKeys as Record<string, AppliedKey>)[key]?.secret ?? false;
      return `${key}=${isSecret ? '***' : value}\n`;
    });
    return lines.join('');
  }
}

export function readConfig(sources: ConfigSources): ServerConfig {
  const { flags = {}, javaArguments = [], environment = {}, file, myid } = sources;
  const given = new Map<string, Given>();
  const authProviders = new Map<string, string>();
  const superUsers = new Map<string, string>();
  const warnings: string[] = [];
  let only: OnlyServer | undefined;
  const take = (key: string, value: string, origin: string) => {
    const at = { value: value.trim(), origin };
    if (key.startsWith(authProviderPrefix)) {
      authProviders.set(key.slice(authProviderPrefix.length), at.value);
    } else if (key.startsWith(superUserPrefix)) {
      superUsers.set(key, at.value);
    } else if (Object.hasOwn(appliedKeys, key)) {
      given.set(key, at);
      parsed(key, appliedKeys[key as ConfigKey], at.value, origin);
    } else {
      const warning = unapplied(key, at);
      if (warning !== undefined) warnings.push(warning);
    }
  };

  if (file !== undefined) {
    const properties = readProperties(file.text).map((each) => ({ ...each, key: each.key.trim() }));
    const broken = properties.find(({ isBroken }) => isBroken);
    if (broken !== undefined) {
      throw new ConfigError(
        `${file.name} line ${broken.line}: a \\u wants four hexadecimal digits; a backslash that is meant is written twice`,
      );
    }
    only = onlyServer(properties, file.name);
    for (const { key, value, line } of properties) {
      if (key !== only?.key) take(key, value, `${file.name} line ${line}`);
    }
  }
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith('DROVER_') || value === undefined) continue;
    const key = keyByVariable.get(name);
    // Kubernetes tells each pod of all services: of one called drover-client, DROVER_CLIENT_PORT=tcp://…
    if (key?.endsWith('Port') && /^(tcp|udp|sctp):\/\//.test(value)) {
      warnings.push(`${name}=${value} is the address of a service, and not taken for ${key}`);
    } else if (key !== undefined) take(key, value, name);
    else {
      const near = nearest(name, [...keyByVariable.keys()], 2);
      if (near !== undefined) warnings.push(`${name} is no variable of ours; is ${near} meant?`);
    }
  }
  for (const argument of javaArguments) {
    const at = argument.indexOf('=');
    const name = at === -1 ? argument : argument.slice(0, at);
    const value = at === -1 ? 'true' : argument.slice(at + 1);
    const key = keyByProperty.get(name) ?? withoutPrefix(name);
    const origin = `-D${shownKey(name)}`;
    if (key === undefined) warnings.push(`${origin} is no property of ZooKeeper's`);
    else take(key, value, origin);
  }
  for (const [key, value] of Object.entries(flags)) {
    if (value !== undefined) take(key, value, 'the command line');
  }
  const made = () =>
    new ServerConfig(given, authProviders, [...superUsers.values()], warnings, file !== undefined);
  if (only !== undefined) {
    warnings.push(`${only.origin}: ${only.key} is the only server, so it runs by itself`);
    const isThis = myid?.(made().must('dataDir'))?.trim() === only.key.slice('server.'.length);
    if (isThis) takeClientAddress(only, given);
  }
  const config = made();
  check(config);
  if (config.must('autopurge.snapRetainCount') < snapRetainCountMin) {
    const origin = config.originOf('autopurge.snapRetainCount');
    warnings.push(
      `${origin}: autopurge.snapRetainCount is ${snapRetainCountMin}, as fewer leave no good way back`,
    );
  }
  return config;
}

const keyByVariable = new Map(
  Object.keys(appliedKeys).map((key) => [variableOf(key), key] as const),
);

/** `clientPort` is `DROVER_CLIENT_PORT`, `drover.usersFile` is `DROVER_USERS_FILE`. */
export function variableOf(key: string): string {
  const words = key
    .replace(/^drover\./, '')
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/[^A-Za-z0-9]+/g, '_');
  return `DROVER_${words.toUpperCase()}`;
}

const keyByProperty = new Map(
  Object.entries(appliedKeys as Record<string, AppliedKey>).flatMap(([key, { property }]) =>
    property === undefined ? [] : [[property, key] as const],
  ),
);

function withoutPrefix(name: string): string | undefined {
  if (name.startsWith('zookeeper.')) return name.slice('zookeeper.'.length);
  return name.startsWith('drover.') || Object.hasOwn(inertKeys, name) ? name : undefined;
}

/** The one `server.N` line of a file that names no other: Apache runs standalone then, too. */
interface OnlyServer {
  readonly key: string;
  readonly origin: string;
  /** Behind the `;`: where its clients are. */
  readonly client: string | undefined;
}

function onlyServer(properties: readonly Property[], file: string): OnlyServer | undefined {
  const quorum = properties.filter(({ key }) => ensembleKeys.test(key));
  const [first] = quorum;
  if (first === undefined) return undefined;
  const at = (line: number) => `${file} line ${line}`;
  const other = quorum.find(({ key }) => key !== first.key || !key.startsWith('server.'));
  if (other !== undefined) throw severalServers(other.key, at(other.line));
  const { key, value, line } = quorum.at(-1)!; // of two lines with one key the last counts
  const [servers = '', client] = value.split(';', 2);
  const isQuorum = properties.some(
    (each) => each.key === 'standaloneEnabled' && /^false$/i.test(each.value.trim()),
  );
  if (isQuorum || /:observer\s*$/i.test(servers)) throw severalServers(key, at(line));
  return { key, origin: at(line), client: client?.trim() || undefined };
}

/** As Apache does: what the line says holds, and something else in the file or by a flag is a contradiction. */
function takeClientAddress({ key, origin, client }: OnlyServer, given: Map<string, Given>): void {
  if (client === undefined) return;
  const [, host, port = ''] = /^(?:(.*):)?(\d{1,5})$/.exec(client) ?? [];
  if (port === '') throw new ConfigError(`${origin}: ${key} has no port behind its ;`);
  for (const [name, value] of [
    ['clientPort', port],
    ['clientPortAddress', host],
  ] as const) {
    if (value === undefined || value === '') continue;
    const said = given.get(name);
    if (said !== undefined && said.value !== value) {
      throw new ConfigError(
        `${origin}: ${key} has its clients at ${client}, and ${said.origin} says ${name}=${said.value}; take one of them out`,
      );
    }
    given.set(name, { value, origin });
  }
}

function severalServers(key: string, origin: string): ConfigError {
  return new ConfigError(
    `${origin}: ${key} describes an ensemble, and drover serve runs one server; start several with drover ensemble, or take it out`,
  );
}

/** A warning for a key without effect; nothing for one that is off anyway. */
function unapplied(written: string, { value, origin }: Given): string | undefined {
  const key = written.replace(/^zookeeper\./, '');
  if (ensembleKeys.test(key)) throw severalServers(key, origin);
  const refused = Object.hasOwn(refusedKeys, key) ? refusedKeys[key] : undefined;
  if (refused !== undefined) {
    if (!refused.values.test(value)) return undefined;
    throw new ConfigError(`${origin}: ${key}=${value} can't be had: ${refused.why}`);
  }
  const why = Object.hasOwn(inertKeys, key) ? inertKeys[key] : undefined;
  if (why !== undefined) return `${origin}: ${key} has no effect: ${why}`;
  const prefix = inertPrefixes.find((each) => key.startsWith(each));
  if (prefix !== undefined) return `${origin}: ${shownKey(key)} has no effect here`;
  const known = [...Object.keys(appliedKeys), ...Object.keys(inertKeys), 'server.1'];
  const name = key.split(behindName, 1)[0]!;
  const near =
    nearest(name, known, Math.max(2, Math.floor(name.length / 3))) ?? sameWords(name, known);
  const hint = near === undefined ? '' : `; is ${near} meant?`;
  throw new ConfigError(`${origin}: there is no key ${JSON.stringify(shownKey(written))}${hint}`);
}

/** In no key. What follows was meant as the value, and may be a password. */
const behindName = /[:=\s]/;

const shownKey = (key: string): string => key.replace(/([:=\s])[\s\S]*$/, '$1…');

function parsed(
  key: string,
  spec: AppliedKey,
  text: string,
  origin = 'the default',
): string | number | boolean {
  const wrong = (wanted: string) =>
    new ConfigError(`${origin}: ${key} has to be ${wanted}, and is ${JSON.stringify(text)}`);
  switch (spec.kind) {
    case 'text':
      return text;
    case 'address':
      // Java takes an empty one for this, Node for all there are; and brackets as URLs have them.
      return text === '' ? '127.0.0.1' : text.replace(/^\[(.*:.*)\]$/, '$1');
    case 'int': {
      // Java takes hexadecimal for jute.maxbuffer, and nowhere else; it harms nowhere.
      if (!/^[+-]?\d{1,15}$|^0x[0-9a-fA-F]{1,8}$/.test(text)) throw wrong('a whole number');
      return Number(text);
    }
    case 'flag':
      if (/^true$/i.test(text)) return true;
      if (/^false$/i.test(text)) return false;
      throw wrong('true or false');
  }
}

/** What no value alone can tell. */
function check(config: ServerConfig): void {
  const range = (key: ConfigKey, from: number, to: number) => {
    const value = config.get(key) as number | undefined;
    if (value !== undefined && (value < from || value > to)) {
      throw new ConfigError(
        `${config.originOf(key)}: ${key} has to be from ${from} to ${to}, and is ${value}`,
      );
    }
  };
  for (const port of ['clientPort', 'secureClientPort', 'admin.serverPort'] as const) {
    range(port, 0, 65_535);
  }
  range('metricsProvider.httpPort', 0, 65_535);
  range('tickTime', 1, 3_600_000);
  // A client is told in 32 bits.
  range('minSessionTimeout', -1, 0x7fff_ffff);
  range('maxSessionTimeout', -1, 0x7fff_ffff);
  range('jute.maxbuffer', 1024, 0x7fff_ffff);
  range('nio.sessionlessCnxnTimeout', 1, 0x7fff_ffff);
  range('snapCount', 2, Number.MAX_SAFE_INTEGER);
  range('preAllocSize', 1, 16 * 1024 * 1024);
  range('znode.container.checkIntervalMs', 1, 0x7fff_ffff);
  range('znode.container.maxPerMinute', 1, 0x7fff_ffff);
  for (const name of Object.keys(defaultLimits) as LimitName[]) {
    range(`drover.limits.${name}`, 0, Number.MAX_SAFE_INTEGER);
  }
  if (config.isGiven('secureClientPortAddress') && !config.isGiven('secureClientPort')) {
    const origin = config.originOf('secureClientPortAddress');
    throw new ConfigError(
      `${origin}: secureClientPortAddress without secureClientPort: nobody would listen there`,
    );
  }
  for (const key of ['dataDir', 'dataLogDir'] as const) {
    if (config.get(key) === '') throw new ConfigError(`${config.originOf(key)}: ${key} is empty`);
  }
  if (!config.must('admin.commandURL').startsWith('/')) {
    const origin = config.originOf('admin.commandURL');
    throw new ConfigError(`${origin}: admin.commandURL has to be a path that begins with /`);
  }
  const ticks = config.must('tickTime');
  const least = config.must('minSessionTimeout');
  const most = config.must('maxSessionTimeout');
  if ((least === -1 ? 2 * ticks : least) > (most === -1 ? 20 * ticks : most)) {
    throw new ConfigError('minSessionTimeout must not be larger than maxSessionTimeout');
  }
}

/** The shortest name with all of these words in it, in whatever order: `timeTick`, `snapRetainCount`, `port`. */
function sameWords(name: string, known: readonly string[]): string | undefined {
  const words = wordsOf(name);
  if (words.length === 0) return undefined;
  return known
    .filter((key) => words.every((word) => wordsOf(key).includes(word)))
    .reduce<string | undefined>(
      (best, key) =>
        best === undefined || wordsOf(key).length < wordsOf(best).length ? key : best,
      undefined,
    );
}

const wordsOf = (name: string) =>
  name.match(/[A-Z]*[a-z0-9]+|[A-Z]+/g)?.map((word) => word.toLowerCase()) ?? [];
