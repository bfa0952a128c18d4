/**
 * Every key of a zoo.cfg that zookeeperAdmin.md of 3.9.5 names, and a few of our own (`drover.…`).
 *
 *   applied   it does here what it does there, unless `about` says otherwise
 *   inert     known, and without effect here: named in a warning, with the reason
 *   refused   known, and wanting what is not here would be dangerous to ignore: an error when switched on
 *   ensemble  a file with such a key describes several servers, or is from one that does
 *
 * docs/configuration.md is made from this table.
 */

import { defaultLimits, type LimitName } from './limits.ts';

export type KeyKind = 'text' | 'int' | 'flag' | 'address';

export interface AppliedKey {
  readonly kind: KeyKind;
  readonly default?: string;
  readonly about: string;
  /** As a Java system property, where that is not `zookeeper.` and the key. */
  readonly property?: string;
  /** Never shown. */
  readonly secret?: boolean;
  /** The default where there is a file, if it is another one: a file is read as Apache reads it. */
  readonly fileDefault?: string;
}

/** A smaller autopurge.snapRetainCount counts as this, as with Apache. */
export const snapRetainCountMin = 3;

const limitAbout = (name: LimitName): AppliedKey => ({
  kind: 'int',
  default: String(defaultLimits[name]),
  about: 'a limit, see docs/server.md; 0 is none',
});

const limitKeys = Object.fromEntries(
  (Object.keys(defaultLimits) as LimitName[]).map((name) => [
    `drover.limits.${name}`,
    limitAbout(name),
  ]),
) as { readonly [N in LimitName as `drover.limits.${N}`]: AppliedKey };

// biome-ignore format: a table is read down its columns
const own = {
  'drover.insecureBind': { kind: 'flag', default: 'false', about: 'allows listening beyond this machine without authentication: clients, the admin server and metrics' },
  'drover.allowHosts':   { kind: 'text', about: 'host names by which the admin server and metrics may be called, with commas between, besides `localhost` and IP addresses' },
  'drover.usersFile':    { kind: 'text', about: 'SASL users, a `name: password` a line; a JAAS file does as well' },
  'drover.auditFile':    { kind: 'text', about: 'where the audit log goes; without, to the log' },
  'drover.inMemory':     { kind: 'flag', default: 'false', about: 'keeps nothing: for tests' },
  'drover.sessionPasswords': { kind: 'text', default: 'secret', about: '`secret`: passwords of sessions follow from a secret of the data directory. `apache`: from the id alone, as at Apache, so that sessions survive a move to an Apache server and clients that may read an ephemeral node can take over its session' },
  'drover.unsafeNoFsync': { kind: 'flag', default: 'false', about: 'acknowledges what a loss of power takes away again: for tests' },
  'drover.salvage':      { kind: 'flag', default: 'false', about: 'goes on where files are damaged, from the longest whole prefix' },
  'drover.logLevel':     { kind: 'text', default: 'warn', about: 'silent, error, warn, info or debug' },
} as const satisfies Record<string, AppliedKey>;

// biome-ignore format: a table is read down its columns
const apache = {
  'dataDir':                 { kind: 'text', default: './drover-data', about: 'snapshots, and logs where dataLogDir is not named. Apache has no default' },
  'dataLogDir':              { kind: 'text', about: 'logs, best on a disk of their own' },
  'datadir.autocreate':      { kind: 'flag', default: 'true', about: '`false` refuses to start where dataDir or dataLogDir has no `version-2`' },
  'clientPort':              { kind: 'int',  default: '2181', about: '0 takes any that is free' },
  'clientPortAddress':       { kind: 'address', default: '127.0.0.1', about: 'Apache listens everywhere; here that needs authentication by SASL or mutual TLS, or drover.insecureBind' },
  'secureClientPort':        { kind: 'int',  about: 'where TLS is spoken' },
  'secureClientPortAddress': { kind: 'address', about: 'as clientPortAddress' },
  'tickTime':                { kind: 'int',  default: '2000', fileDefault: '3000', about: 'milliseconds; sessions last 2 to 20 of them. Where a file names none it is 3000, as with Apache' },
  'minSessionTimeout':       { kind: 'int',  default: '-1', about: 'milliseconds; -1 is 2 ticks' },
  'maxSessionTimeout':       { kind: 'int',  default: '-1', about: 'milliseconds; -1 is 20 ticks' },
  'maxClientCnxns':          { kind: 'int',  default: '60', about: 'links from one address; 0 is no limit' },
  'maxCnxns':                { kind: 'int',  default: String(defaultLimits.connectionsMax), about: 'links in all; 0 is no limit. Apache has none' },
  'jute.maxbuffer':          { kind: 'int',  default: String(defaultLimits.frameBytesMax), property: 'jute.maxbuffer', about: 'bytes of the largest frame, from 1024 to 2147483647' },
  'snapCount':               { kind: 'int',  default: '100000', about: 'transactions between two snapshots, from half of it to all of it; unless it is given, no fewer than two thirds of the nodes, and up to a million small ones not more often than every 10 s' },
  'snapSizeLimitInKb':       { kind: 'int',  default: '4194304', about: 'KiB of the log between two snapshots, from half of it to all of it, however few the transactions; 0 is no limit' },
  'preAllocSize':            { kind: 'int',  default: '65536', about: 'KiB by which a log grows ahead' },
  'snapshot.compression.method': { kind: 'text', default: '', about: '`gz`, or nothing; `snappy` is read and not written' },
  'autopurge.snapRetainCount': { kind: 'int', default: '3', about: `snapshots to keep, at least ${snapRetainCountMin}` },
  'autopurge.purgeInterval': { kind: 'int',  default: '0', about: 'hours; 0 never purges' },
  'fsync.warningthresholdms': { kind: 'int', default: '1000', property: 'fsync.warningthresholdms', about: 'milliseconds; a batch that takes the log longer is told and counted' },
  'forceSync':               { kind: 'text', default: 'yes', about: '`no` acknowledges what a loss of power takes away again' },
  'digest.enabled':          { kind: 'flag', about: 'a digest over the tree is kept, logged with each transaction and checked; on, unless nothing is kept on disk' },
  'enforceQuota':            { kind: 'flag', default: 'false', about: 'hard limits of quotas act, and what is beyond a soft one is told in the log' },
  'extendedTypesEnabled':    { kind: 'flag', default: 'false', about: 'TTL nodes' },
  'reconfigEnabled':         { kind: 'flag', default: 'false', about: 'changes nothing but an error code: there is one server' },
  'skipACL':                 { kind: 'text', default: 'no', about: '`yes` checks no permission at all' },
  '4lw.commands.whitelist':  { kind: 'text', default: 'srvr', about: 'the four-letter words that are answered; `*` is all of them. A server that listens on loopback alone also answers those that `drover status` and the console ask for, unless this is set' },
  'znode.container.checkIntervalMs': { kind: 'int', default: '60000', property: 'znode.container.checkIntervalMs', about: 'how often empty containers and TTL nodes are looked for' },
  'znode.container.maxPerMinute': { kind: 'int', default: '10000', property: 'znode.container.maxPerMinute', about: 'how many of them go in a minute' },
  'znode.container.maxNeverUsedIntervalMs': { kind: 'int', default: '0', property: 'znode.container.maxNeverUsedIntervalMs', about: 'a container that never had a child goes after this; 0 keeps it' },

  'admin.enableServer':      { kind: 'flag', about: 'on as soon as another admin key is there; Apache has it on' },
  'admin.serverAddress':     { kind: 'address', default: '127.0.0.1', about: 'Apache listens everywhere; here that needs drover.insecureBind' },
  'admin.serverPort':        { kind: 'int',  default: '8080', about: '0 takes any that is free' },
  'admin.commandURL':        { kind: 'text', default: '/commands', about: 'where the commands are' },
  'admin.snapshot.enabled':  { kind: 'flag', default: 'false', about: 'who may do everything with `/` may fetch a snapshot; Apache has it on' },
  'admin.restore.enabled':   { kind: 'flag', default: 'false', about: 'who may do everything with `/` may put a snapshot in the place of all there is; Apache has it on' },
  'admin.rateLimiterIntervalInMS': { kind: 'int', default: '300000', about: 'milliseconds from one such snapshot, or one such restore, to the next' },

  'metricsProvider.className': { kind: 'text', about: 'a name with `Prometheus` in it switches `/metrics` on' },
  'metricsProvider.httpHost': { kind: 'address', default: '127.0.0.1', about: 'Apache listens everywhere; here that needs drover.insecureBind' },
  'metricsProvider.httpPort': { kind: 'int',  default: '7000', about: '0 takes any that is free' },
  'metricsProvider.exportJvmInfo': { kind: 'flag', default: 'true', about: 'metrics of the process, here of Node' },

  'audit.enable':            { kind: 'flag', default: 'false', about: 'who changed what' },

  'DigestAuthenticationProvider.enabled': { kind: 'flag', default: 'true', about: '`false` makes `digest` no scheme: neither to authenticate by nor in ACLs' },
  'DigestAuthenticationProvider.superDigest': { kind: 'text', secret: true, about: '`super:` and a digest: who may do everything' },
  'DigestAuthenticationProvider.digestAlg': { kind: 'text', default: 'SHA1', about: 'of digests: `SHA1`, `SHA-256`, `SHA3-256` and the like' },
  'X509AuthenticationProvider.superUser': { kind: 'text', about: 'the subject of the certificate whose owner may do everything' },
  'superUser':               { kind: 'text', about: 'the SASL user who may do everything; `superUser.` and any suffix names another one' },
  'ensembleAuthName':        { kind: 'text', about: 'names of this server, with commas between: a client that shows another one by the scheme `ensemble` is disconnected. Needs `authProvider.ensemble`' },
  'nio.sessionlessCnxnTimeout': { kind: 'int', default: '10000', about: 'milliseconds; a connection that has not asked for a session by then is closed. The same as drover.limits.handshakeTimeoutMs' },
  'readonlymode.enabled':    { kind: 'flag', default: 'false', property: 'readonlymode.enabled', about: 'only adds `isro` to the whitelist: a server by itself is never read-only' },
  'sessionRequireClientSASLAuth': { kind: 'flag', default: 'false', about: 'refuses who has not authenticated by SASL' },
  'enforce.auth.enabled':    { kind: 'flag', default: 'false', about: 'refuses who has not authenticated by one of enforce.auth.schemes' },
  'enforce.auth.schemes':    { kind: 'text', about: '`sasl`, `digest`, `x509`, `ip`, with commas between' },
  'login.config':            { kind: 'text', property: 'java.security.auth.login.config', about: 'a JAAS file with a `Server` section of DigestLoginModule' },
  'sasl.serverconfig':       { kind: 'text', default: 'Server', about: 'the section of it' },
  'SASLAuthenticationProvider.superPassword': { kind: 'text', secret: true, about: 'of the SASL user `super`, whatever the file of users says' },

  'ssl.keyStore.location':   { kind: 'text', about: 'key and certificates, in PEM, PKCS#12 or JKS' },
  'ssl.keyStore.type':       { kind: 'text', about: '`PEM`, `PKCS12` or `JKS`; told by the name where it is missing' },
  'ssl.keyStore.password':   { kind: 'text', secret: true, about: 'of the key' },
  'ssl.keyStore.passwordPath': { kind: 'text', about: 'a file with it' },
  'ssl.trustStore.location': { kind: 'text', about: 'who may sign certificates of clients, in PEM, PKCS#12 or JKS' },
  'ssl.trustStore.type':     { kind: 'text', about: '`PEM`, `PKCS12` or `JKS`; told by the name where it is missing' },
  'ssl.trustStore.password': { kind: 'text', secret: true, about: 'of PKCS#12 or JKS' },
  'ssl.trustStore.passwordPath': { kind: 'text', about: 'a file with it' },
  'ssl.clientAuth':          { kind: 'text', default: 'need', about: '`need`, `want` or `none`' },
  'ssl.enabledProtocols':    { kind: 'text', about: 'of `TLSv1.2` and `TLSv1.3`' },
  'ssl.ciphersuites':        { kind: 'text', about: 'by their names in OpenSSL or in Java' },
  'client.certReload':       { kind: 'flag', default: 'false', about: 'reads certificates again when their files change; SIGHUP always does' },
} as const satisfies Record<string, AppliedKey>;

export const appliedKeys: typeof own & typeof apache & typeof limitKeys = {
  ...apache,
  ...own,
  ...limitKeys,
};

export type ConfigKey = keyof typeof appliedKeys;

/** `authProvider.sasl=org.apache…SASLAuthenticationProvider`, with any name behind the dot. */
export const authProviderPrefix = 'authProvider.';

const ensembles = 'only servers of an ensemble do that';
const threads = 'there are no threads to tune';
const throttle = 'there is no such throttle; the limits of drover.limits hold instead';
const caches = 'there is no such cache';
const connections = 'there is one kind of connections';
const watchers = 'watches are kept another way';
const batches = 'batches are as large as what came in meanwhile';
const https = 'the admin server speaks plain HTTP on loopback';

/** Known, without effect, and why. */
export const inertKeys: Readonly<Record<string, string>> = {
  ...reasons(ensembles, [
    ...[
      'advancedFlowControlEnabled',
      'cnxTimeout',
      'commitLogCount',
      'connectToLearnerMasterLimit',
    ],
    ...['electionAlg', 'electionPortBindRetry', 'fastleader.maxNotificationInterval'],
    ...['fastleader.minNotificationInterval', 'follower.skipLearnerRequestToNextProcessor'],
    ...['forward_learner_requests_to_commit_processor_disabled', 'leader.closeSocketAsync'],
    ...[
      'leader.maxConcurrentDiffSyncs',
      'leader.maxConcurrentSnapSyncs',
      'leader.maxTimeToWaitForEpoch',
    ],
    ...['leaderServes', 'learner.asyncSending', 'learner.closeSocketAsync', 'localSessionsEnabled'],
    ...['localSessionsUpgradingEnabled', 'maxConcurrentDiffSyncs', 'maxConcurrentSnapSyncs'],
    ...['maxTimeToWaitForEpoch', 'multiAddress.enabled', 'multiAddress.reachabilityCheckEnabled'],
    ...['multiAddress.reachabilityCheckTimeoutMs', 'observer.election.DelayMs'],
    ...['observer.reconnectDelayMs', 'observer.syncEnabled', 'observerMasterPort', 'oraclePath'],
    ...[
      'peerType',
      'portUnification',
      'quorum.auth.enableSasl',
      'quorum.auth.kerberos.servicePrincipal',
    ],
    ...['quorum.auth.learner.saslLoginContext', 'quorum.auth.learnerRequireSasl'],
    ...['quorum.auth.server.saslLoginContext', 'quorum.auth.serverRequireSasl'],
    ...['quorum.cnxn.threads.size', 'quorumCnxnTimeoutMs', 'quorumListenOnAllIPs', 'sslQuorum'],
    ...['sslQuorumReloadCertFiles', 'standaloneEnabled', 'syncEnabled', 'tcpKeepAlive'],
    ...['db.autocreate', 'enableEagerACLCheck', 'forceSnapshotSync'],
    ...['leader.ackLoggingFrequency', 'leaderConnectDelayDuringRetryMs'],
    ...['observerMaster.sizeLimit', 'snapshotSizeFactor'],
  ]),
  ...reasons('one server has nobody to wait for; several are what drover ensemble starts', [
    'initLimit',
    'syncLimit',
  ]),
  ...reasons(threads, [
    ...['commitProcessor.maxCommitBatchSize', 'commitProcessor.maxReadBatchSize'],
    ...['commitProcessor.numWorkerThreads', 'commitProcessor.shutdownTimeout'],
    ...['nio.directBufferBytes', 'nio.numSelectorThreads', 'nio.numWorkerThreads'],
    ...['nio.shutdownTimeout', 'jvm.pause.info-threshold.ms'],
    ...['jvm.pause.monitor', 'jvm.pause.warn-threshold.ms', 'jvm.pause.sleep.time.ms'],
    ...['metricsProvider.maxQueueSize', 'metricsProvider.numWorkerThreads'],
    ...['metricsProvider.workerShutdownTimeoutMs'],
  ]),
  ...reasons(throttle, [
    ...['connectionDecreaseRatio', 'connectionDropDecrease', 'connectionDropIncrease'],
    ...['connectionFreezeTime', 'connectionMaxTokens', 'connectionTokenFillCount'],
    ...['connectionTokenFillTime', 'connection_throttle_decrease_ratio'],
    ...['connection_throttle_drop_decrease', 'connection_throttle_drop_increase'],
    ...['connection_throttle_fill_count', 'connection_throttle_fill_time'],
    ...['connection_throttle_freeze_time', 'connection_throttle_global_session_weight'],
    ...['connection_throttle_local_session_weight', 'connection_throttle_renew_session_weight'],
    ...['connection_throttle_tokens', 'connection_throttle_weight_enabled'],
    ...['globalOutstandingLimit', 'largeRequestMaxBytes', 'largeRequestThreshold'],
    ...['outstandingHandshake.limit', 'requestStaleConnectionCheck', 'requestStaleLatencyCheck'],
    ...['requestThrottleDropStale', 'requestThrottleLimit', 'requestThrottleStallTime'],
    ...['request_stale_connection_check', 'request_stale_latency_check'],
    ...[
      'request_throttle_drop_stale',
      'request_throttle_max_requests',
      'request_throttle_stall_time',
    ],
    ...['request_throttler.shutdownTimeout', 'throttledOpWaitTime', 'throttled_op_wait_time'],
    ...['netty.server.outstandingHandshake.limit'],
    ...['netty.server.earlyDropSecureConnectionHandshakes'],
  ]),
  ...reasons(caches, [
    'maxGetChildrenResponseCacheSize',
    'maxResponseCacheSize',
    'bitHashCacheSize',
  ]),
  ...reasons(watchers, [
    ...['maxInProcessingDeadWatchers', 'watchManagerName', 'watcherCleanIntervalInSeconds'],
    ...['watcherCleanThreadsNum', 'watcherCleanThreshold'],
  ]),
  ...reasons(batches, ['flushDelay', 'maxBatchSize', 'maxWriteQueuePollTime']),
  ...reasons(connections, [
    ...['clientPortListenBacklog', 'clientTcpKeepAlive', 'netty.advancedFlowControl.enabled'],
    ...['serverCnxnFactory'],
  ]),
  ...reasons(https, [
    ...['admin.forceHttps', 'admin.needClientAuth', 'admin.portUnification', 'admin.idleTimeout'],
    ...['admin.httpVersion'],
  ]),
  ...reasons('keys are read by Node and OpenSSL', [
    ...['fips-mode', 'ssl.context.supplier.class', 'ssl.handshakeDetectionTimeoutMillis'],
    ...['ssl.protocol', 'ssl.sslProvider'],
  ]),
  ...reasons('a server can not verify the host name of a client; certificates are', [
    ...['ssl.allowReverseDnsLookup', 'ssl.clientHostnameVerification', 'ssl.hostnameVerification'],
  ]),
  ...reasons('there is no Kerberos on the server', [
    ...['kerberos.canonicalizeHostNames', 'kerberos.removeHostFromPrincipal'],
    ...['kerberos.removeRealmFromPrincipal', 'kerberos.minReLoginTimeMs', 'kinit'],
    ...['requireKerberosConfig', 'security.auth_to_local', 'jaasLoginRenew'],
  ]),
  ...reasons('clients alone do that', [
    ...['client.secure', 'clientCnxnSocket', 'disableAutoWatchReset', 'request.timeout'],
    ...['sasl.client', 'sasl.client.canonicalize.hostname', 'sasl.client.username'],
    ...['sasl.clientconfig', 'server.principal', 'server.realm'],
  ]),
  ...reasons('who is meant by an ACL stands in it', ['letAnySaslUserDoX']),
  ...reasons('requests are not counted by their paths', [
    ...['pathStats.delay', 'pathStats.enabled', 'pathStats.initialDelay', 'pathStats.maxDepth'],
    ...['pathStats.sampleRate', 'pathStats.slotCapacity', 'pathStats.slotDuration'],
    ...['pathStats.topPathMax'],
  ]),
  ...reasons('there is no JMX', ['jmx.log4j.disable', 'jmx.log4j.mbean']),
  ...reasons('buffers grow as they are needed', ['intBufferStartingSizeBytes']),
  ...reasons('addresses are those of sockets', ['IPAuthenticationProvider.usexforwardedfor']),
  ...reasons('lines go to drover.auditFile or to the log', ['audit.impl.class']),
  ...reasons('logs without a snapshot are told from a lost snapshot by their zxids', [
    ...['snapshot.trust.empty'],
  ]),
  ...reasons('it is always written', [
    ...['serializeLastProcessedZxid.enabled', 'closeSessionTxn.enabled'],
  ]),
  ...reasons('it follows from jute.maxbuffer', ['jute.maxbuffer.extrasize']),
  ...reasons('old TTL nodes are not told from ephemeral ones', ['emulate353TTLNodes']),
  ...reasons('a log ends where a snapshot begins', ['txnLogSizeLimitInKb']),
  ...reasons('there is nothing to trace', [
    ...['messageTracker.BufferSize', 'messageTracker.Enabled', 'traceFile', 'requestTraceFile'],
  ]),
  ...reasons('links are closed as they are', ['allowSaslFailedClients']),
  // zkServer.sh passes these to every server, for the patterns of its own log4j and logback files.
  ...reasons('the log goes to standard output, see drover.logLevel', [
    ...['log.dir', 'log.file', 'log.threshold', 'log.maxfilesize', 'log.maxbackupindex'],
    ...['root.logger', 'console.threshold', 'tracelog.dir', 'tracelog.file', 'auditlog.file'],
    ...['audit.logger', 'auditlog.threshold'],
  ]),
};

/** Dangerous to ignore: an error where the value is one of these. */
export const refusedKeys: Readonly<Record<string, { values: RegExp; why: string }>> = {
  'ssl.crl': { values: /^true$/i, why: 'lists of revoked certificates are not read' },
  'ssl.ocsp': { values: /^true$/i, why: 'OCSP is not asked' },
  'client.portUnification': { values: /^true$/i, why: 'plain text and TLS have a port each' },
  requireClientAuthScheme: {
    values: /./,
    why: 'no server reads it any more; sessionRequireClientSASLAuth=true is what it was for',
  },
  'ssl.authProvider': { values: /^(?!x509$)/, why: 'only x509 is known' },
};

/** With any of these in a file, several servers are meant; but for one `server.N` alone. */
export const ensembleKeys = /^(server|group|weight)\.\d+$|^dynamicConfigFile$/;

/** `superUser.1` and the like: further super users by SASL. */
export const superUserPrefix = 'superUser.';

/** ssl.quorum.* and the like: whatever is behind the prefix, ensembles alone have it. */
export const inertPrefixes: readonly string[] = ['ssl.quorum.', 'metricsProvider.'];

function reasons(why: string, keys: readonly string[]): Record<string, string> {
  return Object.fromEntries(keys.map((key) => [key, why]));
}
