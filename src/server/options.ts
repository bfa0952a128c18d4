/** What a server can be told. Everything has a default but where to listen. */

import type { TlsOptions } from 'node:tls';
import type { OpName } from '../protocol/index.ts';
import type { Clock, Logger } from '../support/index.ts';
import type { Applied, Tree } from '../tree/index.ts';
import type { Refused } from './audit.ts';
import type { AuthOptions } from './auth.ts';
import type { Call } from './call.ts';
import type { StorageFacts } from './facts.ts';
import type { LimitName } from './limits.ts';
import type { SessionPasswords } from './passwords.ts';
import type { PersistenceOptions } from './persistence-options.ts';
import type { Sasl } from './sasl.ts';
import type { TxnLog } from './txn-log.ts';

export interface RequestSeen {
  readonly sessionId: bigint;
  readonly op: OpName;
  readonly xid: number;
}

export interface EngineOptions extends AuthOptions {
  readonly clock: Clock;
  readonly tickTimeMs: number;
  readonly minSessionTimeoutMs: number;
  readonly maxSessionTimeoutMs: number;
  /** The top byte of session ids: 1, as a standalone Apache has. */
  readonly serverId?: number | undefined;
  /** How the password of a session follows from its id. Without: by a secret that is forgotten with the process. */
  readonly passwords?: SessionPasswords | undefined;
  /** TTL nodes: `zookeeper.extendedTypesEnabled`. */
  readonly extendedTypesEnabled?: boolean | undefined;
  /** A digest over the tree is kept, logged and checked: on where there is a dataDir. `zookeeper.digest.enabled`. */
  readonly digestEnabled?: boolean | undefined;
  /** Hard limits of quotas act: `enforceQuota`. */
  readonly enforceQuota?: boolean | undefined;
  readonly reconfigEnabled?: boolean | undefined;
  readonly limits?: { readonly [N in LimitName]?: number | undefined } | undefined;
  /** A batch that takes the log longer is told: `fsync.warningthresholdms`. 1,000. */
  readonly slowAppendMs?: number | undefined;
  /** Silent unless one is handed in. */
  readonly logger?: Logger | undefined;
  readonly log?: TxnLog | undefined;
  /** The tree that storage has read; a fresh one without. */
  readonly tree?: Tree | undefined;
  /** Answers the first four bytes of a link, or does not: then they are a frame's length. */
  readonly fourLetterWord?: ((word: string, rest: Buffer) => string | undefined) | undefined;
  /** Hears of every write once it is applied, before its reply leaves. */
  readonly onCommitted?: ((call: Call, applied: Applied) => void) | undefined;
  /** Hears of every write that is refused before it is a txn. Only beside `onCommitted`. */
  readonly onRefused?: ((refused: Refused) => void) | undefined;
  /** Without, SASL tokens are answered with none, as Apache does that has no JAAS file. */
  readonly sasl?: Sasl | undefined;
  /** A link that has proved an id of none of these schemes is closed: `enforce.auth.schemes`. */
  readonly requiredSchemes?: readonly string[] | undefined;
  /** Sees every request. A code that it returns is the answer, and nothing is done. For tests. */
  readonly onRequest?: ((request: RequestSeen) => number | undefined) | undefined;
}

export interface ServerOptions
  extends Partial<Omit<EngineOptions, 'tree'>>,
    Partial<Omit<PersistenceOptions, 'extendedTypesEnabled' | 'digestEnabled' | 'clock'>> {
  /** 0 takes any that is free. */
  readonly port?: number | undefined;
  readonly host?: string | undefined;
  /** Nothing is kept, whatever `dataDir` says: what is written is gone with the process. */
  readonly inMemory?: boolean | undefined;
  readonly tree?: Tree | undefined;
  /** With a `port` of its own TLS is spoken there and plain text on the other; else on the one port. */
  readonly tls?:
    | (TlsOptions & { readonly port?: number | undefined; readonly host?: string | undefined })
    | undefined;
  /** The words that are answered, as `4lw.commands.whitelist` has it. `srvr` always is. */
  readonly fourLetterWords?: string | undefined;
  /** Bytes that are free where a folder is; asked of the system without. For tests. */
  readonly diskFreeBytes?: ((folder: string) => Promise<number>) | undefined;
  /** What there is to say about what is on disk. */
  readonly storage?: StorageFacts | undefined;
  /** The configuration as it was read, for who asks. No secrets. */
  readonly initialConfig?: string | undefined;
  /** How often containers and TTL nodes are looked through: `znode.container.checkIntervalMs`. */
  readonly reapIntervalMs?: number | undefined;
  /** `znode.container.maxPerMinute`. */
  readonly reapPerMinuteMax?: number | undefined;
  /** `znode.container.maxNeverUsedIntervalMs`; 0 keeps a container that never had a child. */
  readonly reapNeverUsedMs?: number | undefined;
}
