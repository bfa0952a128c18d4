/**
 * What the page and the console's server say to each other: inputs, by schema, and the events of the
 * stream. What comes out is in `views.ts`; the routes themselves are a table in `routes.ts`.
 *
 * JSON has no bigint: zxids and session ids are `0x…`, offsets and fencing tokens are decimal text,
 * times are milliseconds since 1970. Data travels as base64, so that no byte changes on the way.
 * Errors are `{ error: { code, message, path? } }` with a fitting status.
 *
 * The page imports types from here and nothing else, so that no schema lands in its bundle.
 */

import { z } from 'zod';
import type {
  AuditEntry,
  ChangeView,
  FindingView,
  LinkView,
  MetricPoint,
  ServerView,
} from './views.ts';

// ── limits ──────────────────────────────────────────────────────────────────────────────────────

// biome-ignore format: a table is read down its columns
export const limits = {
  bodyBytesMax:     4 * 1024 * 1024, // 1 MB of data as base64 in JSON, twice over, and room
  pathCharsMax:     16 * 1024,
  pageRowsMax:      500,             // rows of one page of children
  pageRowsUsual:    100,
  findMatchesMax:   500,
  findNodesMax:     100_000,         // nodes that one search looks at
  recipeNodesMax:   50_000,          // nodes that are looked at for recipes
  topicsPageMax:    500,
  groupsPageMax:    200,
  auditMax:         1_000,           // entries that are kept
  deleteMax:        100_000,         // nodes that one delete may take
  copyMax:          20_000,          // nodes that one copy may take: it ends within a request
  undoBytesMax:     1024 * 1024,     // data kept for undo, of one entry
  lineCharsMax:     64 * 1024,       // a line for the shell
  outputBytesMax:   1024 * 1024,     // of what a command prints
  streamsMax:       64,              // event streams at once
  streamsOfOneMax:  16,              // of one address
  eventsKept:       2_000,           // for Last-Event-ID
  changesPerEvent:  500,
} as const;

// ── inputs ──────────────────────────────────────────────────────────────────────────────────────

const path = z.string().min(1).max(limits.pathCharsMax);
const base64 = z.base64().max(limits.bodyBytesMax);
const version = z.int().min(-1).max(0x7fff_ffff);
const count = (most: number) => z.coerce.number().int().min(0).max(most);
const offset = count(Number.MAX_SAFE_INTEGER).default(0);
const filter = z.string().max(1_000).default('');
const name = z.string().min(1).max(1_000);
const perms = z.string().regex(/^[cdrwa]{1,5}$/);

/** What each GET takes, in its query. */
export const queries = {
  none: z.strictObject({}),
  path: z.strictObject({ path }),
  children: z.strictObject({
    path,
    offset,
    limit: count(limits.pageRowsMax).default(limits.pageRowsUsual),
    /** Part of the name, whatever the case. No pattern: nothing of it is executed. */
    filter,
    /** The page that this child stands on, instead of the one at `offset`. */
    around: z.string().min(1).max(limits.pathCharsMax).optional(),
    /** By name, or by ZooKeeper's ten digits at its end. */
    sort: z.enum(['name', '-name', 'sequence', '-sequence']).default('name'),
  }),
  /** Letters in order, a name for each stretch between slashes: `/br/to` is /brokers/topics. */
  paths: z.strictObject({ text: z.string().min(1).max(1_000), limit: count(100).default(20) }),
  history: z.strictObject({ path, limit: count(500).default(50) }),
  find: z.strictObject({
    path,
    text: z.string().min(1).max(1_000),
    /** Age: changed less (`<2h`) or more (`>30d`) than so long ago. */
    in: z.enum(['name', 'data', 'owner', 'age']).default('name'),
    limit: count(limits.findMatchesMax).default(100),
  }),
  list: z.strictObject({ offset, limit: count(500).default(100), filter }),
  /** `only`: topics with a fault alone. */
  topics: z.strictObject({
    offset,
    limit: count(limits.topicsPageMax).default(100),
    filter,
    only: z.enum(['all', 'faulty']).default('all'),
    /** Only these, with commas between them: no topic has one in its name. */
    names: z.string().max(16_384).optional(),
  }),
  timeline: z.strictObject({ name, partition: count(0x7fff_ffff) }),
  named: z.strictObject({ name }),
  recipes: z.strictObject({ path: path.default('/') }),
  metrics: z.strictObject({ ring: z.enum(['1m', '15m', '6h']).default('1m') }),
} as const;

const acl = z
  .array(z.strictObject({ scheme: z.string().min(1).max(64), id: z.string().max(1_000), perms }))
  .min(1)
  .max(64);

const copy = {
  /** Null: where the console was started for. */
  from: z.string().min(1).max(64).nullable(),
  /** Each with all below it. One stands at `to` itself, several below it by their names. */
  paths: z.array(path).min(1).max(500),
  to: path,
  onConflict: z.enum(['skip', 'overwrite']),
  withAcl: z.boolean(),
};

/** What each POST takes, as JSON. */
export const bodies = {
  none: z.strictObject({}),
  login: z.strictObject({ token: z.string().min(1).max(1_000) }),
  create: z.strictObject({
    path,
    data: base64.default(''),
    mode: z
      .enum(['persistent', 'persistentSequential', 'container', 'persistentTtl'])
      .default('persistent'),
    ttlMs: z.int().min(1).max(0xff_ffff_ffff).optional(),
    acl: acl.optional(),
    parents: z.boolean().default(false),
  }),
  /** `version` is the one that was read; -1 is refused: nobody overwrites what they have not seen. */
  set: z.strictObject({ path, data: base64, version: z.int().min(0).max(0x7fff_ffff) }),
  /** Of all below as well: `confirm` and `count` as for a delete, by /api/node/below. */
  acl: z.strictObject({
    path,
    acl,
    version,
    recursive: z.boolean().default(false),
    confirm: z.string().max(limits.pathCharsMax).optional(),
    count: z.int().min(1).max(limits.deleteMax).optional(),
  }),
  /** Each path with all below it. `confirm` is the last name of the path, or for several the count of nodes. */
  delete: z.strictObject({
    paths: z.array(path).min(1).max(500),
    confirm: z.string().max(limits.pathCharsMax),
    /** As the preview counted. When there are more by now, nothing is deleted. */
    count: z.int().min(1).max(limits.deleteMax),
  }),
  deletePreview: z.strictObject({ paths: z.array(path).min(1).max(500) }),
  undo: z.strictObject({ id: z.int().min(1) }),
  shell: z.strictObject({
    line: z.string().min(1).max(limits.lineCharsMax),
    json: z.boolean().default(false),
    cwd: path.default('/'),
  }),
  import: z.strictObject({
    path,
    /** What export gave. */
    nodes: z
      .array(
        z.strictObject({
          path: z.string().max(limits.pathCharsMax),
          data: base64.nullable(),
          acl: acl.optional(),
        }),
      )
      .max(10_000),
    onConflict: z.enum(['fail', 'overwrite', 'skip']).default('fail'),
    dryRun: z.boolean().default(true),
  }),
  /** From another context, or from the same, into the one that the request is for. */
  copyPreview: z.strictObject(copy),
  copy: z.strictObject({
    ...copy,
    confirm: z.string().max(limits.pathCharsMax).nullable(),
    /** As the preview counted. When there are more by now, nothing is written. */
    create: z.int().min(0).max(limits.copyMax),
    change: z.int().min(0).max(limits.copyMax),
  }),
  /** How an aligned group's limit moves from now on. */
  rule: z.strictObject({
    name,
    rule: z.strictObject({
      mode: z.enum(['period', 'drift', 'off']),
      stepMs: z.int().min(1).max(Number.MAX_SAFE_INTEGER),
      lookAhead: z.int().min(0).max(1_000).nullable().default(null),
      driftMs: z.int().min(1).max(Number.MAX_SAFE_INTEGER).nullable().default(null),
    }),
  }),
  /** An aligned group is held where it is, let on by some periods, or let go. */
  hold: z.strictObject({
    name,
    action: z.enum(['pause', 'step', 'continue']),
    periods: z.int().min(1).max(1_000_000).default(1),
  }),
  /** Of a group that is stopped; without topic or partitions all of them. Exactly one of the ways. */
  reset: z.strictObject({
    name,
    topic: name.optional(),
    partitions: z.array(name).max(10_000).optional(),
    to: z.union([z.enum(['earliest', 'latest']), z.string().regex(/^\d{1,19}$/)]).optional(),
    shiftBy: z
      .string()
      .regex(/^-?\d{1,19}$/)
      .optional(),
    toTimeMs: z.int().min(0).optional(),
    delete: z.literal(true).optional(),
    dryRun: z.boolean().default(true),
    /** The group's name; not for a dry run. */
    confirm: z.string().max(1_000).optional(),
  }),
  /** Leaders of a topic's partitions: the preferred replicas. */
  elect: z.strictObject({
    topic: name,
    partitions: z.array(z.int().min(0)).max(10_000).optional(),
    dryRun: z.boolean().default(true),
    /** The topic's name; not for a dry run. */
    confirm: z.string().max(1_000).optional(),
  }),
  bench: z.strictObject({ what: z.enum(['reads', 'writes']), inFlight: z.int().min(1).max(100) }),
  expire: z.strictObject({ session: z.string().regex(/^0x[0-9a-f]{1,16}$/) }),
} as const;

export type QueryOf<N extends keyof typeof queries> = z.input<(typeof queries)[N]>;
export type BodyOf<N extends keyof typeof bodies> = z.input<(typeof bodies)[N]>;

// ── the stream ──────────────────────────────────────────────────────────────────────────────────

/** Pages that show something made of many nodes, to be asked for again when it may have changed. */
export type LiveView = 'kafka' | 'groups' | 'alignment' | 'recipes' | 'audit';

/**
 * `GET /api/events`, as server-sent events: `event:` is the kind, `data:` its JSON, `id:` to go on with.
 * After a break the browser sends Last-Event-ID and gets what it missed, or `resync` where that is gone.
 */
export interface StreamEvents {
  /** First on every stream. A `run` that is not the one before: the console was started anew. */
  hello: { run: string; link: LinkView; nowMs: number };
  /** What changed in the tree, in its order: told by a watch, at most `changesPerEvent` at once. */
  nodes: { changes: ChangeView[]; zxid: string };
  /** Something was missed: ask again for whatever is shown. */
  resync: { why: 'reconnected' | 'overflow' | 'gone' };
  /** The console's own session with ZooKeeper. */
  link: LinkView;
  /** Every two seconds while somebody listens. */
  servers: { servers: ServerView[]; findings: FindingView[]; zxid: string | null };
  metrics: MetricPoint;
  audit: AuditEntry;
  /** Something under a page's nodes changed; at most once a second. */
  views: { views: LiveView[] };
  /** Every 15 s, so that a dead stream is seen: nothing for 40 s is "stale". */
  beat: { nowMs: number };
}
export type StreamKind = keyof StreamEvents;

export interface ErrorView {
  readonly error: { readonly code: string; readonly message: string; readonly path?: string };
}

export type * from './views.ts';
