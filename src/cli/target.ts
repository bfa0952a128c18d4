/**
 * Where a command goes and who it says it is: flags first, then variables, then the selected context,
 * then 127.0.0.1:2181.
 *
 * Secrets come from files and variables, or from `--auth` where somebody insists: that one shows up in
 * the list of processes. None is ever printed.
 */

import { type ClientOptions, digestMd5, parseServers, type TlsOptions } from '../client/index.ts';
import { readPlainFile } from '../support/index.ts';
import type { CommandOption, OptionValues, Target } from './command.ts';
import type { SavedContext } from './contexts.ts';
import { CommandError } from './exit-codes.ts';

type Environment = Readonly<Record<string, string | undefined>>;

// biome-ignore format: a table is read down its columns
export const connectionOptions: readonly CommandOption[] = [
  { flags: '--server <hosts>',        about: 'host:port,…[/chroot]; else DROVER_SERVER, the selected context, 127.0.0.1:2181' },
  { flags: '--context <name>',        about: 'a saved context instead of the selected one; also DROVER_CONTEXT', value: 'context' },
  { flags: '--read-only',             about: 'refuses every command that writes' },
  { flags: '--allow-read-only',       about: 'takes a server too that has lost its quorum (zkCli: -r)' },
  { flags: '--session-timeout <ms>',  about: 'asked of the server; 30000' },
  { flags: '--connect-timeout <ms>',  about: 'how long to look for a server; 5000' },
  { flags: '--max-buffer <bytes>',    about: 'jute.maxbuffer of the servers; 1048575' },
  { flags: '--auth <scheme:auth>',    about: 'digest:user:password; better in DROVER_AUTH or --auth-file', many: true },
  { flags: '--auth-file <file>',      about: 'the same, one a line', value: 'file' },
  { flags: '--sasl-user <name>',      about: 'SASL DIGEST-MD5; its password is in DROVER_SASL_PASSWORD' },
  { flags: '--tls',                   about: 'TLS, with the certificates that Node trusts' },
  { flags: '--tls-ca <file>',         about: 'trusts these certificates instead', value: 'file' },
  { flags: '--tls-cert <file>',       about: 'our own certificate', value: 'file' },
  { flags: '--tls-key <file>',        about: 'and its key', value: 'file' },
  { flags: '--tls-name <host>',       about: 'the name in the server’s certificate' },
  { flags: '--client-configuration <file>', about: 'zkCli’s properties file; key and trust stores as PEM', value: 'file' },
];

export const defaultServers = '127.0.0.1:2181';
const connectTimeoutMs = 5_000;
/** Of replies: children of one node come in one frame, and 300,000 names are some 10 MB. */
const frameBytesMax = 256 * 1024 * 1024;
const maxBufferBytes = 0xfffff;
/** What a request holds besides path and data. */
const aroundBytes = 512;

export async function targetOf(options: OptionValues, environment: Environment): Promise<Target> {
  const text = (name: string) => options[name] as string | undefined;
  const named = text('context');
  // A variable is for who says nothing: a context that is named has its servers and its credentials.
  const variable = named === undefined ? environment.DROVER_SERVER || undefined : undefined;
  const given = text('server') ?? variable;
  const contextName = named ?? (environment.DROVER_CONTEXT || undefined);
  // A context is more than an address: with --server alone, nothing of it applies.
  const saved =
    given === undefined || named !== undefined
      ? await (await import('./contexts.ts')).selectedContext(environment, contextName)
      : null;
  const servers = given ?? saved?.servers ?? defaultServers;
  const origin =
    text('server') !== undefined
      ? '--server'
      : given !== undefined
        ? 'DROVER_SERVER'
        : saved !== null
          ? `context ${saved.name}`
          : 'default';
  checkServers(servers, origin);
  const file = text('clientConfiguration');
  const properties = file === undefined ? {} : propertiesOf(await readText(file));
  const tls = await tlsOf(options, saved, properties);
  const sasl = saslOf(
    text('saslUser') ?? environment.DROVER_SASL_USER ?? saved?.saslUser,
    environment,
  );
  const auth = await authOf(options, saved, environment);
  const requestBytesMax = numberOf(options, 'maxBuffer', '--max-buffer') ?? maxBufferBytes;
  const client: ClientOptions = {
    sessionTimeoutMs: numberOf(options, 'sessionTimeout', '--session-timeout') ?? 30_000,
    closeTimeoutMs,
    connectTimeoutMs: numberOf(options, 'connectTimeout', '--connect-timeout') ?? connectTimeoutMs,
    frameBytesMax,
    requestBytesMax,
    readOnly: options.allowReadOnly === true,
    ...(auth.length > 0 && { auth }),
    ...(tls && { tls }),
    ...(sasl && { sasl }),
  };
  return {
    servers,
    origin,
    readOnly: options.readOnly === true || saved?.readOnly === true,
    client,
    dataBytesMax: Math.max(1, requestBytesMax - aroundBytes),
  };
}

/** A command that has done its work does not hold up its user for a server that is away. */
const closeTimeoutMs = 2_000;

/** The longest request that is sent there: `jute.maxbuffer` of the servers. */
export function requestBytesMaxOf({ client }: Target): number {
  return client.requestBytesMax ?? maxBufferBytes;
}

/** True when a line says for itself where it goes. */
export function namesTarget(options: OptionValues): boolean {
  return options.server !== undefined || options.context !== undefined;
}

function checkServers(servers: string, origin: string): void {
  try {
    parseServers(servers);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new CommandError('usage', `${origin}: ${why}`, { cause });
  }
}

function numberOf(options: OptionValues, key: string, flag: string): number | undefined {
  const text = options[key];
  if (text === undefined) return undefined;
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  throw new CommandError('usage', `${flag} ${String(text)}: a whole number above 0 is wanted`);
}

async function readText(file: string): Promise<string> {
  try {
    return (await readPlainFile(file)).toString('utf8');
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code ?? 'unknown error';
    throw new CommandError('usage', `${file} can't be read (${reason})`, { cause });
  }
}

// ── who we are ────────────────────────────────────────────────────────────────────────────────────

async function authOf(
  options: OptionValues,
  saved: SavedContext | null,
  { DROVER_AUTH }: Environment,
): Promise<{ scheme: string; auth: string }[]> {
  const lines = [...((options.auth ?? []) as readonly string[])];
  if (DROVER_AUTH) lines.push(...DROVER_AUTH.split('\n'));
  const file = options.authFile as string | undefined;
  if (file !== undefined) lines.push(...(await readText(file)).split('\n'));
  const given = lines.map((line) => line.trim()).filter((line) => line !== '');
  return [...(saved?.auth ?? []), ...given.map(authPair)];
}

function authPair(line: string): { scheme: string; auth: string } {
  const colon = line.indexOf(':');
  if (colon > 0) return { scheme: line.slice(0, colon), auth: line.slice(colon + 1) };
  // The line is not shown: it may be a password.
  throw new CommandError('usage', '--auth: scheme:auth is wanted, as digest:user:password');
}

function saslOf(username: string | undefined, { DROVER_SASL_PASSWORD }: Environment) {
  if (username === undefined) return undefined;
  if (DROVER_SASL_PASSWORD !== undefined) {
    return digestMd5({ username, password: DROVER_SASL_PASSWORD });
  }
  throw new CommandError('usage', '--sasl-user: put its password into DROVER_SASL_PASSWORD');
}

const tlsFiles = [
  ['tlsCa', '--tls-ca'],
  ['tlsCert', '--tls-cert'],
  ['tlsKey', '--tls-key'],
] as const;

async function tlsOf(
  options: OptionValues,
  saved: SavedContext | null,
  properties: Readonly<Record<string, string>>,
): Promise<TlsOptions | undefined> {
  const text = (name: string) => options[name] as string | undefined;
  const store = properties['zookeeper.ssl.keyStore.location'];
  for (const [name, flag] of tlsFiles) {
    if (text(name) === '') throw new CommandError('usage', `${flag}: a file is wanted`);
  }
  const ca = text('tlsCa') ?? saved?.tls?.ca ?? properties['zookeeper.ssl.trustStore.location'];
  const cert = text('tlsCert') ?? saved?.tls?.cert ?? store;
  const key = text('tlsKey') ?? saved?.tls?.key ?? store;
  const servername = text('tlsName') ?? saved?.tls?.serverName;
  const isAsked = options.tls === true || saved?.tls !== undefined;
  const isSecure = properties['zookeeper.client.secure'] === 'true';
  if (!isAsked && !isSecure && [text('tlsCa'), text('tlsCert'), text('tlsKey')].every((x) => !x)) {
    return undefined;
  }
  for (const file of [ca, cert, key]) {
    if (!/\.(jks|p12|pfx|bcfks)$/i.test(file ?? '')) continue;
    throw new CommandError(
      'usage',
      `${file}: a PEM file is wanted; openssl pkcs12 -nodes makes one`,
    );
  }
  const password = properties['zookeeper.ssl.keyStore.password'];
  return {
    ...(ca && { ca: await readText(ca) }),
    ...(cert && { cert: await readText(cert) }),
    ...(key && { key: await readText(key) }),
    ...(key && password && { passphrase: password }),
    ...(servername && { servername }),
  };
}

/** `key=value` lines, as Java's properties have them; no escapes, which no path needs. */
function propertiesOf(text: string): Record<string, string> {
  const lines = text.split('\n').map((line) => line.trim());
  const pairs = lines.filter((line) => /^[^#!][^=:]*[=:]/.test(line));
  return Object.fromEntries(
    pairs.map((line) => {
      const [, key = '', value = ''] = /^([^=:]*)[=:](.*)$/.exec(line)!;
      return [key.trim(), value.trim()];
    }),
  );
}
