/**
 * `drover serve`: a server until it is told to stop.
 *
 * In: flags, -D arguments, variables, a zoo.cfg. Out: a few lines that say where it listens and how to
 * stop it, then nothing until the end. SIGTERM and SIGINT drain and end with 0, a second SIGINT ends
 * at once; SIGHUP reads certificates again. A server that can't write its log says what is still
 * certain and ends with a code that a supervisor takes for a failure.
 */

import {
  appendFileSync,
  type FSWatcher,
  readdirSync,
  readFileSync,
  statSync,
  watch,
} from 'node:fs';
import { dirname, join, resolve, sep } from 'node:path';
import type { RunningConsole } from '../console/index.ts';
import {
  type AdminServer,
  Audit,
  Auth,
  ConfigError,
  droverVersion,
  optionsOf,
  type RunningServer,
  readConfig,
  readTls,
  type ServerConfig,
  startAdminServer,
  startServer,
  tlsFiles,
  wantsAdmin,
  zooKeeperVersion,
} from '../server/index.ts';
import { isStorageError, type StorageError } from '../storage/index.ts';
import type { Context, OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { isLogLevel, LazyLogger } from './logger.ts';
import type { MetricsServer } from './metrics.ts';
import { setServingFlags } from './v8-flags.ts';
import { within } from './within.ts';

/** A server that does not drain by then is ended anyway; its log is whole all the same. */
const drainTimeoutMs = 10_000;
/** What nobody has read of its output by then, from when all is closed, is given up. */
const unreadTimeoutMs = 1_000;
/** So many bytes of an audit log wait for who reads standard output; then no more do until they are gone. */
const unreadBytesMax = 1024 * 1024;
/** By then the first links have made Node load what it needs for them: what it brings compiled is good for its own flags alone. */
const settledAfterMs = 50;

export async function serve(
  context: Context,
  args: readonly string[],
  flags: OptionValues,
): Promise<number> {
  const config = configOf(args, flags);
  const logger = loggerOf(config);
  try {
    return await untilTold(context, config, logger, flags);
  } finally {
    await logger.flush();
  }
}

async function untilTold(
  context: Context,
  config: ServerConfig,
  logger: LazyLogger,
  flags: OptionValues,
): Promise<number> {
  const consolePort = consolePortOf(flags);
  for (const warning of config.warnings) tell(`warning: ${warning}`);
  warnLoudly(config);
  checkDataDir(config);
  const audit = auditOf(config);
  const stop = signalled(); // from now on: who sees that we are ready may stop us at once
  const hangUps = new HangUps();
  const begun = await Promise.race([stop, begin(config, logger, audit)]);
  if ('signal' in begun) {
    // A large log takes minutes to read, and nobody was served so far: there is nothing to let land.
    tell(`${begun.signal}: ending; what is on disk was still being read`);
    await logger.flush();
    process.exit(exitCodes.ok);
  }
  const server = begun;
  const closers: (() => Promise<void>)[] = [() => server.close()];
  try {
    const admin = await adminOf(config, server, logger);
    if (admin !== undefined) closers.unshift(() => admin.close());
    const metrics = await metricsServerOf(config, server);
    if (metrics !== undefined) closers.unshift(() => metrics.close());
    const metricsUrl =
      metrics && `http://${at(config.must('metricsProvider.httpHost'), metrics.port)}/metrics`;
    const web = await consoleOf(context, server, flags, consolePort, metricsUrl);
    if (web !== undefined) closers.unshift(() => web.close());
    const reloading = reloadCertificates(config, server, hangUps);
    closers.unshift(async () => reloading.close());
    audit?.serverStarted();
    sayReady(config, server, { admin, metrics, web }, flags.json === true);
  } catch (error) {
    await close(closers);
    throw asCommandError(error, config);
  }
  const settling = setTimeout(() => void settle(logger), settledAfterMs);
  const end = await Promise.race([stop, server.failed.then((error) => ({ failed: error }))]);
  clearTimeout(settling);
  audit?.serverStops();
  if ('failed' in end) {
    tell(stoppedMessage(end.failed, server));
    return bounded(close(closers), exitCodes.stopped);
  }
  tell(`${end.signal}: closing; once more ends at once`);
  return bounded(close(closers), exitCodes.ok);
}

/** What can wait until the first links are served. */
async function settle(logger: LazyLogger): Promise<void> {
  try {
    await logger.load();
  } catch (error) {
    // As when an update takes the program away right behind its start. It can do without.
    tell(`nothing is logged until the next start: ${(error as Error).message}`);
  }
  setServingFlags();
}

function tell(text: string): void {
  process.stderr.write(`drover: ${text}\n`);
}

async function close(closers: readonly (() => Promise<void>)[]): Promise<void> {
  for (const each of closers) await each();
}

async function bounded(work: Promise<void>, code: number): Promise<number> {
  const late = setTimeout(() => {
    tell(`did not close in ${drainTimeoutMs} ms; ending anyway`);
    process.exit(exitCodes.bug);
  }, drainTimeoutMs).unref();
  try {
    await work;
  } finally {
    clearTimeout(late);
  }
  // An audit log on standard output that nobody reads would keep the process.
  setTimeout(() => process.exit(code), unreadTimeoutMs).unref();
  return code;
}

// ── before ────────────────────────────────────────────────────────────────────────────────────────

/** Flags and the keys that they stand for. */
const keyOfFlag = {
  port: 'clientPort',
  address: 'clientPortAddress',
  data: 'dataDir',
  dataLog: 'dataLogDir',
  users: 'drover.usersFile',
  words: '4lw.commands.whitelist',
  adminPort: 'admin.serverPort',
  metricsPort: 'metricsProvider.httpPort',
  audit: 'drover.auditFile',
  logLevel: 'drover.logLevel',
  insecureBind: 'drover.insecureBind',
  inMemory: 'drover.inMemory',
  unsafeNoFsync: 'drover.unsafeNoFsync',
  salvage: 'drover.salvage',
} as const;

function configOf([file, ...more]: readonly string[], flags: OptionValues): ServerConfig {
  if (more.length > 0) throw new CommandError('usage', 'one zoo.cfg is enough');
  const given: Record<string, string> = {};
  for (const [flag, key] of Object.entries(keyOfFlag)) {
    const value = flags[flag];
    if (value !== undefined) given[key] = String(value);
  }
  if (flags.audit !== undefined) given['audit.enable'] = 'true';
  if (flags.metricsPort !== undefined) given['metricsProvider.className'] = 'Prometheus';
  const pair = (text: string): [string, string] => {
    const at = text.indexOf('=');
    if (at < 1) throw new CommandError('usage', `${text}: name=value is wanted`);
    return [text.slice(0, at), text.slice(at + 1)];
  };
  for (const text of (flags.limit ?? []) as readonly string[]) {
    const [name, value] = pair(text);
    given[`drover.limits.${name}`] = value;
  }
  for (const text of (flags.set ?? []) as readonly string[]) {
    const [name, value] = pair(text);
    given[name] = value;
  }
  try {
    return readConfig({
      flags: given,
      javaArguments: (flags.D ?? []) as readonly string[],
      environment: process.env,
      file: file === undefined ? undefined : { name: file, text: readFile(file) },
    });
  } catch (error) {
    throw asCommandError(error);
  }
}

function readFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new CommandError('usage', `${file} can't be read (${code}); name a zoo.cfg, or none`, {
      cause,
    });
  }
}

function loggerOf(config: ServerConfig): LazyLogger {
  const level = config.must('drover.logLevel');
  if (isLogLevel(level)) return new LazyLogger(level);
  throw new CommandError('usage', `--log-level ${level}: silent, error, warn, info or debug`);
}

function warnLoudly(config: ServerConfig): void {
  if (config.must('drover.inMemory')) {
    tell('IN MEMORY: nothing is kept; all of it is gone when this process ends');
  } else if (config.must('drover.unsafeNoFsync') || config.must('forceSync') === 'no') {
    tell(
      'UNSAFE: writes are acknowledged before they are on disk; a loss of power takes them away',
    );
  }
  if (config.must('drover.salvage')) {
    tell('SALVAGE: where files are damaged, what can not be read is given up');
  }
  if (config.must('skipACL') === 'yes') tell('UNSAFE: skipACL=yes, no permission is checked');
}

/** What may stand beside version-2: Apache puts it there, or who keeps the configuration with the data. */
const apacheFiles =
  /^(version-2|myid|initialize|zookeeper_server\.pid|lost\+found|.*\.cfg(\.dynamic.*)?|\..*)$/;

/** A home folder, say, is no data directory; who points at one has mistyped. */
function checkDataDir(config: ServerConfig): void {
  if (config.must('drover.inMemory')) return;
  const folders = [config.must('dataDir'), config.get('dataLogDir')].filter(
    (one) => one !== undefined,
  );
  for (const folder of folders) {
    const status = statusOf(folder);
    const versionFolder = join(folder, 'version-2');
    if (!config.must('datadir.autocreate') && statusOf(versionFolder) === undefined) {
      throw new CommandError(
        'data',
        `${versionFolder} is not there, and datadir.autocreate=false; make it, or name another folder with --data`,
      );
    }
    if (status === undefined) {
      refuseAnothersName(folder);
      continue;
    }
    if (!status.isDirectory()) {
      throw new CommandError('data', `${folder} is no folder; name one with --data`);
    }
    const names = readdirOrFail(folder);
    const isOurs = (name: string) => folders.some((one) => isWithin(one, join(folder, name)));
    const foreign = names.find((name) => !apacheFiles.test(name) && !isOurs(name));
    if (foreign !== undefined && !names.includes('version-2')) {
      throw new CommandError(
        'data',
        `${folder} holds other things (${foreign}) and no version-2, so it is no data directory; name another one with --data, or an empty one`,
      );
    }
  }
}

/** Logs may lie in a folder of the data directory, and the other way round. */
const isWithin = (path: string, folder: string) =>
  `${resolve(path)}${sep}`.startsWith(`${resolve(folder)}${sep}`);

/** Apache reads a zoo.cfg as Latin-1: what is `dä` to us is `dÃ¤` there. To start empty would lose all. */
function refuseAnothersName(folder: string): void {
  const asJava = Buffer.from(folder).toString('latin1');
  if (asJava === folder || statusOf(asJava) === undefined) return;
  throw new CommandError(
    'data',
    `${folder} is not there, and ${asJava} is, as Java reads the same bytes; rename it, or name it with --data or --data-log`,
  );
}

function statusOf(folder: string) {
  try {
    return statSync(folder, { throwIfNoEntry: false });
  } catch (error) {
    throw asCommandError(error);
  }
}

function readdirOrFail(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    throw asCommandError(error);
  }
}

type BoundAudit = Audit & { bind(auth: Auth): void };

/**
 * Where lines can't be written when it starts, it does not. Later it is said, and the server goes on: no
 * write is lost with its line, and Apache's logging goes on as well.
 */
function auditOf(config: ServerConfig): BoundAudit | undefined {
  if (!config.must('audit.enable')) return undefined;
  const file = config.get('drover.auditFile') ?? '-';
  let gone: Error | undefined; // a pipe tells later, and for good
  let isUnread = false;
  if (file === '-') {
    process.stdout.on('error', (error) => {
      gone = error;
    });
  }
  const append = (text: string) => {
    if (file === '-') {
      if (gone !== undefined) throw gone;
      isUnread = process.stdout.writableLength > (isUnread ? 0 : unreadBytesMax);
      if (isUnread) throw Object.assign(new Error('nobody reads it'), { code: 'EAGAIN' });
      process.stdout.write(text);
    } else appendFileSync(file, text, { mode: 0o600 });
  };
  const why = (error: unknown) =>
    `the audit log ${file === '-' ? 'on standard output' : file} can't be written (${(error as NodeJS.ErrnoException).code})`;
  try {
    append('');
  } catch (cause) {
    throw new CommandError('data', `${why(cause)}; name another file`, { cause });
  }
  let lost = 0;
  const write = (line: string) => {
    try {
      append(`${new Date().toISOString()}\t${line}\n`);
    } catch (error) {
      if (lost === 0) tell(`${why(error)}; the server goes on without`);
      lost += 1;
      return;
    }
    if (lost > 0) tell(`the audit log is written again, and lacks ${lost} lines`);
    lost = 0;
  };
  let auth: Auth | undefined;
  const audit = new Audit(write, () => auth!);
  return Object.assign(audit, {
    bind(to: Auth) {
      auth = to;
    },
  });
}

// ── begin ─────────────────────────────────────────────────────────────────────────────────────────

async function begin(
  config: ServerConfig,
  logger: LazyLogger,
  audit: BoundAudit | undefined,
): Promise<RunningServer> {
  try {
    const options = optionsOf(config);
    audit?.bind(new Auth(options)); // who finds the first port open may write before the second is
    return await startServer({
      ...options,
      logger,
      ...(audit === undefined
        ? {}
        : {
            onCommitted: (call, applied) => audit.committed(call, applied),
            onRefused: (call) => audit.refused(call),
          }),
    });
  } catch (error) {
    audit?.startFailed();
    throw asCommandError(error, config);
  }
}

async function adminOf(
  config: ServerConfig,
  server: RunningServer,
  logger: LazyLogger,
): Promise<AdminServer | undefined> {
  if (!wantsAdmin(config)) return undefined;
  return startAdminServer(server.facts, {
    host: config.must('admin.serverAddress'),
    port: config.must('admin.serverPort'),
    commandUrl: config.must('admin.commandURL'),
    snapshotEnabled: config.must('admin.snapshot.enabled'),
    restoreEnabled: config.must('admin.restore.enabled'),
    snapshotIntervalMs: config.must('admin.rateLimiterIntervalInMS'),
    logger,
  });
}

async function metricsServerOf(
  config: ServerConfig,
  server: RunningServer,
): Promise<MetricsServer | undefined> {
  if (!config.get('metricsProvider.className')?.includes('Prometheus')) return undefined;
  const { startMetrics } = await import('./metrics.ts');
  return startMetrics(server.facts, {
    host: config.must('metricsProvider.httpHost'),
    port: config.must('metricsProvider.httpPort'),
    processMetrics: config.must('metricsProvider.exportJvmInfo'),
  });
}

/** Undefined: none is wanted. */
function consolePortOf({ consolePort, console: isWanted }: OptionValues): number | undefined {
  if (consolePort === undefined || isWanted === false) return undefined;
  return within(consolePort, '--console-port', 0, 65_535, 0);
}

async function consoleOf(
  context: Context,
  server: RunningServer,
  flags: OptionValues,
  port: number | undefined,
  metricsUrl: string | undefined,
): Promise<RunningConsole | undefined> {
  if (port === undefined) return undefined;
  const { openServerConsole } = await import('./console-server.ts');
  const { offeredContexts } = await import('./console-contexts.ts');
  return openServerConsole(context, server, {
    port,
    write: flags.consoleWrite === true,
    metricsUrl,
    // Whoever reaches the port would act with the user's passwords: only where that was asked for.
    contexts: offeredContexts(flags.consoleContexts, false),
    say: tell,
  });
}

interface Beside {
  readonly admin: AdminServer | undefined;
  readonly metrics: MetricsServer | undefined;
  readonly web: RunningConsole | undefined;
}

/** As clients write it. */
const at = (host: string, port: number) => `${host.includes(':') ? `[${host}]` : host}:${port}`;

function sayReady(
  config: ServerConfig,
  server: RunningServer,
  { admin, metrics, web }: Beside,
  asJson: boolean,
): void {
  const { dataDir, dataLogDir } = {
    dataDir: config.must('drover.inMemory') ? null : resolve(config.must('dataDir')),
    dataLogDir: config.get('dataLogDir') ?? null,
  };
  // Since the process began, which is what who waits for it sees; without the build of `npm start`.
  const [built] = performance.getEntriesByName('drover built');
  const readyMs = Math.round(performance.now() - (built?.startTime ?? 0));
  if (asJson) {
    const facts = {
      address: server.address,
      securePort: server.securePort ?? null,
      adminPort: admin?.port ?? null,
      metricsPort: metrics?.port ?? null,
      consolePort: web?.port ?? null,
      ...{ dataDir, dataLogDir, readyMs, pid: process.pid },
      version: droverVersion(),
      zooKeeper: zooKeeperVersion,
    };
    process.stdout.write(`${JSON.stringify(facts)}\n`);
    return;
  }
  const lines = [
    `drover ${droverVersion()}, like ZooKeeper ${zooKeeperVersion}, standalone`,
    `  clients  ${server.address}${server.securePort === server.port ? ' (TLS)' : ''}`,
    ...(server.securePort === undefined || server.securePort === server.port
      ? []
      : [
          `  TLS      ${at(config.get('secureClientPortAddress') ?? server.host, server.securePort)}`,
        ]),
    `  data     ${dataDir ?? 'in memory: nothing is kept'}`,
    ...(dataLogDir === null ? [] : [`  logs     ${dataLogDir}`]),
    ...(admin === undefined
      ? []
      : [`  admin    http://${at(admin.host, admin.port)}${config.must('admin.commandURL')}`]),
    ...(metrics === undefined
      ? []
      : [`  metrics  http://${at(config.must('metricsProvider.httpHost'), metrics.port)}/metrics`]),
    ...(web === undefined ? [] : [`  console  ${web.url}`]),
    `  ready in ${readyMs} ms; Ctrl-C stops (process ${process.pid})`,
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}

// ── while it runs ─────────────────────────────────────────────────────────────────────────────────

function signalled(): Promise<{ signal: string }> {
  return new Promise((done) => {
    let isAsked = false;
    const stop = (signal: NodeJS.Signals) => {
      if (isAsked) process.exit(exitCodes.interrupted);
      isAsked = true;
      done({ signal });
    };
    process.on('SIGTERM', stop);
    process.on('SIGINT', stop);
  });
}

/** SIGHUP ends who does not listen, and a supervisor may send it while files are still being read. */
class HangUps {
  #hear: (() => void) | undefined;
  #isMissed = false;

  constructor() {
    process.on('SIGHUP', () => {
      if (this.#hear === undefined) this.#isMissed = true;
      else this.#hear();
    });
  }

  /** At once, too, for one that came before. */
  listen(hear: () => void): void {
    this.#hear = hear;
    if (this.#isMissed) hear();
  }
}

/** Writers replace files in several steps; the last of them counts. */
const settleMs = 200;

function reloadCertificates(
  config: ServerConfig,
  server: RunningServer,
  hangUps: HangUps,
): { close(): void } {
  const reload = () => {
    if (server.securePort === undefined) return;
    try {
      server.setTls(readTls(config));
      tell('certificates were read again; links that are open keep theirs');
    } catch (error) {
      tell(`certificates stay as they were: ${(error as Error).message}`);
    }
  };
  hangUps.listen(reload);
  if (server.securePort === undefined || !config.must('client.certReload')) return { close() {} };
  const files = tlsFiles(config);
  const contents = () => files.map((file) => readFileSync(file, 'latin1')).join('\n');
  let known = contents();
  let timer: NodeJS.Timeout | undefined;
  const look = () => {
    try {
      const now = contents();
      if (now === known) return;
      known = now;
    } catch {
      return; // between two steps of a replacement; the next of them is seen as well
    }
    reload();
  };
  // Folders, not files: a file that is replaced by another is watched no more.
  const watchers: FSWatcher[] = [];
  const unwatched = ({ code }: NodeJS.ErrnoException) =>
    tell(`certificates can't be watched (${code}): only SIGHUP has them read again`);
  try {
    for (const folder of new Set(files.map((file) => dirname(resolve(file))))) {
      const watcher = watch(folder, () => {
        clearTimeout(timer);
        timer = setTimeout(look, settleMs);
      });
      watchers.push(watcher.on('error', unwatched));
    }
  } catch (error) {
    unwatched(error as Error); // as where others on the machine watch all that may be; Apache goes on, too
  }
  return {
    close() {
      clearTimeout(timer);
      for (const watcher of watchers) watcher.close();
    },
  };
}

// ── what can go wrong ─────────────────────────────────────────────────────────────────────────────

function stoppedMessage(error: Error, server: RunningServer): string {
  const zxid = isStorageError(error) ? error.lastDurableZxid : undefined;
  const last = `0x${(zxid ?? BigInt(server.engine.lastZxid)).toString(16)}`;
  return `stopped, as going on could lose writes: ${error.message}; the last write that is certainly on disk has zxid ${last}`;
}

/** What a folder or a file can be wrong with, in the words of the system. */
const fileCodes: ReadonlySet<string> = new Set([
  ...['EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'EDQUOT', 'ENOTDIR', 'ENOENT', 'EISDIR', 'EEXIST'],
  ...['ENAMETOOLONG', 'ELOOP', 'EINVAL', 'EIO', 'ENXIO', 'ENODEV', 'ENOTSUP', 'EOPNOTSUPP'],
]);

/** What is to be done about those that are no matter of rights. */
const cures: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full: make room',
  EDQUOT: 'the disk quota is used up: make room',
  EIO: 'the disk fails: look at the system log',
  EISDIR: 'a folder stands where a file is wanted: move it away',
  EEXIST: 'something stands in its place: move it away',
  ELOOP:
    'it is a link, and in a data directory none is followed: put what it leads to in its place',
};

function salvageAdvice({ code }: StorageError, isSalvaging: boolean): string {
  if (code === 'WRONG_DIGEST') return '; restore a backup, or go on with all of it by --salvage';
  if (!code.startsWith('DAMAGED') && code !== 'MISSING_TXNS') return '';
  if (isSalvaging) return '; there is nothing whole to go on from: restore a backup';
  return '; restore a backup, or go on without what is lost by --salvage';
}

/** One sentence, for what is foreseen. Anything else stays as it is: a bug has a stack. */
function asCommandError(error: unknown, config?: ServerConfig): unknown {
  if (error instanceof CommandError) return error;
  if (error instanceof ConfigError)
    return new CommandError('usage', error.message, { cause: error });
  if (isStorageError(error, 'SNAPSHOT_FAILED') && 'syscall' in (error.cause as object)) {
    // It is the first of a new directory; without it no server starts.
    return asCommandError(Object.assign(error.cause as Error, { path: error.file }), config);
  }
  if (isStorageError(error)) {
    const advice = salvageAdvice(error, config?.must('drover.salvage') ?? false);
    return new CommandError('data', `${error.message}${advice}`, { cause: error });
  }
  const { code, syscall, path, address, port, hostname } = error as NodeJS.ErrnoException & {
    address?: string;
    port?: number;
    hostname?: string;
  };
  if (syscall === 'listen' || syscall === 'getaddrinfo') {
    const where = port === undefined ? (address ?? hostname ?? '') : at(address ?? '', port);
    const key = config?.must('clientPort') === port ? '--port' : 'its key in the configuration';
    const messages: Record<string, string> = {
      EADDRINUSE: `${where} is taken by another program; stop that one, or choose another port with ${key}`,
      EACCES: `${where} may not be listened on by this user; choose a port above 1023 with ${key}`,
      EADDRNOTAVAIL: `${where} is no address of this machine; choose one with --address`,
      ENOTFOUND: `${where} has no address; choose one with --address`,
    };
    const message = messages[code ?? ''] ?? `can't listen on ${where} (${code})`;
    return new CommandError('address', message, { cause: error });
  }
  if (code !== undefined && fileCodes.has(code)) {
    const where = path ?? config?.must('dataDir') ?? 'a file';
    const cure = cures[code] ?? 'give this user the right to';
    return new CommandError(
      'data',
      `${where} can't be written (${code}); ${cure}, or name another folder with --data`,
      { cause: error },
    );
  }
  return error;
}
