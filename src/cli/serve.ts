/**
 * `drover serve`: a server until it is told to stop.
 *
 * In: flags, -D arguments, variables, a zoo.cfg. Out: a few lines that say where it listens and how to
 * stop it, then nothing until the end. SIGTERM and SIGINT drain and end with 0, a second SIGINT ends
 * at once; SIGHUP reads certificates again. A server that can't write its log says what is still
 * certain and ends with a code that a supervisor takes for a failure.
 */

import type { RunningConsole } from '../console/index.ts';
import {
  type AdminServer,
  Auth,
  allowedHosts,
  optionsOf,
  type RunningServer,
  type ServerConfig,
  startAdminServer,
  startServer,
  wantsAdmin,
  wantsMetrics,
} from '../server/index.ts';
import type { Context, OptionValues } from './command.ts';
import { exitCodes } from './exit-codes.ts';
import { javaStoreReader } from './jks.ts';
import type { LazyLogger } from './logger.ts';
import type { MetricsServer } from './metrics.ts';
import { auditOf, type BoundAudit } from './serve-audit.ts';
import { HangUps, reloadCertificates } from './serve-certificates.ts';
import { configOf, loggerOf, warnLoudly } from './serve-config.ts';
import { checkDataDir } from './serve-data.ts';
import { asCommandError, stoppedMessage } from './serve-errors.ts';
import { at, sayReady, tell } from './serve-words.ts';
import { setServingFlags } from './v8-flags.ts';
import { within } from './within.ts';

/** A server that does not drain by then is ended anyway; its log is whole all the same. */
const drainTimeoutMs = 10_000;
/** What nobody has read of its output by then, from when all is closed, is given up. */
const unreadTimeoutMs = 1_000;
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
    const readJavaStore = await javaStoreReader(config);
    const reloading = reloadCertificates(config, server, hangUps, readJavaStore);
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

// ── begin ─────────────────────────────────────────────────────────────────────────────────────────

async function begin(
  config: ServerConfig,
  logger: LazyLogger,
  audit: BoundAudit | undefined,
): Promise<RunningServer> {
  try {
    const options = optionsOf(config, {
      warn: (sentence) => tell(`warning: ${sentence}`),
      readJavaStore: await javaStoreReader(config),
    });
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
    allowHosts: allowedHosts(config),
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
  if (!wantsMetrics(config)) return undefined;
  const { startMetrics } = await import('./metrics.ts');
  return startMetrics(server.facts, {
    host: config.must('metricsProvider.httpHost'),
    port: config.must('metricsProvider.httpPort'),
    processMetrics: config.must('metricsProvider.exportJvmInfo'),
    allowHosts: allowedHosts(config),
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
  const { askedBrokers } = await import('./console-brokers.ts');
  return openServerConsole(context, server, {
    port,
    write: flags.consoleWrite === true,
    metricsUrl,
    // Whoever reaches the port would act with the user's passwords: only where that was asked for.
    contexts: offeredContexts(flags.consoleContexts, false),
    brokers: askedBrokers(flags.consoleBrokers),
    say: tell,
  });
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
