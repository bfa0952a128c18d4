export { type Logger, silentLogger } from '../support/index.ts';
export { isLoopback } from './addresses.ts';
export { type AdminOptions, type AdminServer, startAdminServer } from './admin.ts';
export { requestOps } from './askable.ts';
export { Audit } from './audit.ts';
export { Auth, type ExtraScheme } from './auth.ts';
export type { Call } from './call.ts';
export { ConfigError, readConfig, type ServerConfig, variableOf } from './config.ts';
export {
  type AppliedKey,
  appliedKeys,
  type ConfigKey,
  inertKeys,
  refusedKeys,
} from './config-keys.ts';
export { allowedHosts, optionsOf, wantsAdmin, wantsMetrics } from './config-options.ts';
export { Connection, type Wire } from './connection.ts';
export { Engine } from './engine.ts';
export { directoryFacts, type ServerFacts, type StorageFacts } from './facts.ts';
export { answerWord, fourLetterWords, readWhitelist } from './four-letter-words.ts';
export {
  defaultLimits,
  type LimitName,
  type Limits,
  limitDefaultText,
  limitsOf,
} from './limits.ts';
export { type Metric, metricsOf, monitorValues, unmeasured } from './metrics.ts';
export type { EngineOptions, RequestSeen, ServerOptions } from './options.ts';
export { type PasswordRule, passwordOf, SessionPasswords } from './passwords.ts';
export { openPersistence, type Persistence } from './persistence.ts';
export type { PersistenceOptions } from './persistence-options.ts';
export { readProperties } from './properties.ts';
export { Restoration } from './restore.ts';
export { Sasl, type SaslOptions } from './sasl.ts';
export { ServerSession, Sessions } from './sessions.ts';
export { type RunningServer, startServer } from './start-server.ts';
export { type ConnectionStats, Latency, latencyBoundsMs, ServerStats } from './stats.ts';
export { namesJavaStore, type ReadJavaStore, readTls, tlsFiles } from './tls.ts';
export { type LoggedTxn, memoryLog, type TxnLog } from './txn-log.ts';
export { readJaas, readUsers, type Users } from './users.ts';
export { droverVersion, fullVersion, zooKeeperVersion } from './version.ts';
export { watchKinds } from './watch-table.ts';
