/**
 * Every route of the console, in one table: its method, path, what its caller needs, what it takes and
 * what it does. A route that is not here is not there, and one without a need would not compile.
 *
 * Changes are POST; whatever is GET changes nothing.
 */

import type { z } from 'zod';
import type { CallOptions } from '../client/index.ts';
import type { Asking, Caller, Need } from './access.ts';
import { bodies, limits, queries } from './api.ts';
import { ConsoleError } from './console-error.ts';
import { ruleInput } from './controls.ts';
import type { Desk } from './desk.ts';
import { resetRule } from './group-controls.ts';
import type { ContextsView } from './views.ts';

export interface Ask<I> {
  readonly input: I;
  readonly caller: Caller;
  readonly asking: Asking;
  /** Role and address of the socket, for the audit. */
  readonly who: string;
  /** Bounds whatever is asked of ZooKeeper for this request. */
  readonly call: CallOptions & { readonly signal: AbortSignal };
  /** Another place; null: where the console was started for. */
  other(context: string | null): Promise<Desk>;
  contexts(): Promise<ContextsView>;
  /** For a login. */
  setCookie(cookie: string): void;
}

export interface Route {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly needs: Need;
  readonly schema: z.ZodType;
  readonly run: (desk: Desk, ask: Ask<never>) => unknown;
}

function route<S extends z.ZodType>(
  method: Route['method'],
  path: string,
  needs: Need,
  schema: S,
  run: (desk: Desk, ask: Ask<z.output<S>>) => unknown,
): Route {
  return { method, path, needs, schema, run };
}

const q = queries;
const b = bodies;

// biome-ignore format: a table is read down its columns
export const routes: readonly Route[] = [
  route('GET',  '/api/session',             'nothing', q.none,     (desk, ask) => desk.session(ask.caller)),
  route('POST', '/api/login',               'nothing', b.login,    login),
  route('POST', '/api/logout',              'nothing', b.none,     logout),

  route('GET',  '/api/contexts',            'view',    q.none,     (_, ask) => ask.contexts()),
  route('GET',  '/api/overview',            'view',    q.none,     (desk, ask) => desk.overview(ask.call)),
  route('GET',  '/api/children',            'view',    q.children, (desk, ask) => desk.tree.children(ask.input.path, ask.input, ask.call)),
  route('GET',  '/api/paths',               'view',    q.paths,    (desk, ask) => desk.tree.paths(ask.input, ask.call)),
  route('GET',  '/api/node',                'view',    q.path,     (desk, ask) => desk.tree.node(ask.input.path, ask.call)),
  route('GET',  '/api/node/below',          'view',    q.path,     (desk, ask) => desk.changes.below(ask.input.path, ask.call)),
  route('GET',  '/api/node/watches',        'view',    q.path,     (desk, ask) => desk.clients.watchesOf(ask.input.path)),
  route('GET',  '/api/history',             'view',    q.history,  (desk, ask) => desk.history(ask.input)),
  route('GET',  '/api/find',                'view',    q.find,     (desk, ask) => desk.tree.find(ask.input, ask.call)),
  route('GET',  '/api/export',              'view',    q.path,     (desk, ask) => desk.tree.export(ask.input.path, ask.call)),
  route('GET',  '/api/sessions',            'view',    q.list,     (desk, ask) => desk.clients.sessions(ask.input)),
  route('GET',  '/api/sessions/one',        'view',    q.named,    (desk, ask) => desk.clients.session(ask.input.name)),
  route('GET',  '/api/watches',             'view',    q.list,     (desk, ask) => desk.clients.watches(ask.input)),
  route('GET',  '/api/recipes',             'view',    q.recipes,  (desk, ask) => desk.recipes.view(ask.input.path, ask.call)),
  route('GET',  '/api/recipes/terms',       'view',    q.path,     (desk, ask) => desk.terms.view(ask.input.path)),
  route('GET',  '/api/kafka',               'view',    q.none,     (desk) => desk.kafka.overview()),
  route('GET',  '/api/kafka/topics',        'view',    q.topics,   (desk, ask) => desk.kafka.topics(ask.input)),
  route('GET',  '/api/kafka/topic',         'view',    q.named,    (desk, ask) => desk.kafka.topic(ask.input.name)),
  route('GET',  '/api/kafka/configs',       'view',    q.list,     (desk, ask) => desk.kafka.admin.configs(ask.input)),
  route('GET',  '/api/kafka/moves',         'view',    q.none,     (desk) => desk.kafka.moves()),
  route('GET',  '/api/kafka/timeline',      'view',    q.timeline, (desk, ask) => desk.kafka.timeline(ask.input)),
  route('GET',  '/api/groups',              'view',    q.list,     (desk, ask) => desk.groups.list(ask.input)),
  route('GET',  '/api/groups/one',          'view',    q.named,    (desk, ask) => desk.groups.one(ask.input.name)),
  route('GET',  '/api/alignment',           'view',    q.none,     (desk, ask) => desk.alignment.list(ask.call)),
  route('GET',  '/api/alignment/one',       'view',    q.named,    (desk, ask) => desk.alignment.one(ask.input.name, ask.call)),
  route('GET',  '/api/metrics',             'view',    q.metrics,  (desk, ask) => desk.metrics.view(ask.input.ring)),
  route('GET',  '/api/audit',               'view',    q.list,     (desk, ask) => desk.auditView(ask.input)),
  route('GET',  '/api/commands',            'view',    q.none,     (desk) => desk.sources.commands ?? []),
  route('GET',  '/api/events',              'view',    q.none,     (desk, ask) => desk.stream(ask.asking)),

  route('POST', '/api/node/delete-preview', 'view',    b.deletePreview, (desk, ask) => desk.changes.preview(ask.input.paths, ask.call)),
  route('POST', '/api/copy/preview',        'view',    b.copyPreview, async (desk, ask) => desk.copying.preview(ask.input, desk, await ask.other(ask.input.from), ask.call)),
  route('POST', '/api/shell',               'view',    b.shell,    (desk, ask) => desk.shell(ask.input, ask)),

  route('POST', '/api/node/create',         'write',   b.create,   (desk, ask) => desk.changes.create(ask.input, ask)),
  route('POST', '/api/node/set',            'write',   b.set,      (desk, ask) => desk.changes.set(ask.input, ask)),
  route('POST', '/api/node/acl',            'write',   b.acl,      (desk, ask) => desk.changes.setAcl(ask.input, ask)),
  route('POST', '/api/node/delete',         'write',   b.delete,   (desk, ask) => desk.changes.delete(ask.input, ask)),
  route('POST', '/api/import',              'write',   b.import,   (desk, ask) => desk.changes.import(ask.input, ask)),
  route('POST', '/api/copy',                'write',   b.copy,     async (desk, ask) => desk.copying.copy(ask.input, desk, await ask.other(ask.input.from), ask)),
  route('POST', '/api/audit/undo',          'write',   b.undo,     (desk, ask) => desk.changes.undo(ask.input.id, ask)),
  route('POST', '/api/alignment/rule',      'write',   b.rule,     (desk, ask) => desk.controls.setRule({ name: ask.input.name, rule: ruleInput(ask.input.rule) }, ask)),
  route('POST', '/api/alignment/hold',      'write',   b.hold,     (desk, ask) => desk.controls.hold(ask.input, ask)),
  route('POST', '/api/groups/reset',        'write',   b.reset,    (desk, ask) => desk.groupControls.reset({ ...ask.input, rule: resetRule(ask.input) }, ask)),
  route('POST', '/api/kafka/elect',         'write',   b.elect,    (desk, ask) => desk.kafkaControls.elect(ask.input, ask)),
  route('POST', '/api/bench',               'write',   b.bench,    (desk, ask) => desk.bench.run(ask.input, ask)),
  route('POST', '/api/sessions/expire',     'write',   b.expire,   (desk, ask) => desk.expire(ask.input.session, ask.who)),
  route('POST', '/api/demo',                'write',   b.none,     (desk, ask) => desk.demo(ask.who)),
];

function login(desk: Desk, ask: Ask<{ token: string }>) {
  if (!desk.access.needsToken) throw new ConsoleError('BAD_INPUT', 'this console has no token');
  const { caller, cookie } = desk.access.login(ask.input.token, ask.asking);
  ask.setCookie(cookie);
  return desk.session(caller);
}

function logout(desk: Desk, ask: Ask<unknown>) {
  ask.setCookie(desk.access.logout(ask.asking));
  return desk.session(desk.access.needsToken ? { role: 'nobody', id: 'nobody' } : ask.caller);
}

/** What a request carries, by the route's schema; the first thing that is wrong with it is said. */
export function inputOf({ schema }: Route, given: unknown): unknown {
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const where = issue?.path.join('.') || 'input';
  throw new ConsoleError('BAD_INPUT', `${where.slice(0, 100)}: ${issue?.message ?? 'is wrong'}`);
}

/** All of a body, as long as it is no longer than it may be. */
export async function readBody(body: ReadableStream<Uint8Array> | null): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > limits.bodyBytesMax) {
      throw new ConsoleError('TOO_LARGE', `at most ${limits.bodyBytesMax} bytes are taken`);
    }
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    throw new ConsoleError('BAD_INPUT', 'JSON is wanted');
  }
}
