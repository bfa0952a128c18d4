/**
 * Recipes for shell scripts: a program that runs while a lock, a lease, a term or a registration is
 * held, and is ended when that is in doubt.
 *
 * The program's exit code is ours. When what it ran under was lost, the code is 8 (unknown): it was
 * told to stop, and somebody else may hold it by now. What it writes to the outside should carry
 * DROVER_FENCING_TOKEN (DROVER_EPOCH), a number that grows with every holder, so that what it writes to
 * can refuse the writes of one that was late.
 */

import { hostname } from 'node:os';
import {
  type Contender,
  Election,
  Lock,
  LockTimeoutError,
  Semaphore,
  ServiceDiscovery,
} from '../recipes/index.ts';
import { runChild } from './child.ts';
import type { Context, OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { escaped } from './output.ts';
import { within } from './within.ts';

type Program = readonly [string, ...string[]];

export async function lock(
  context: Context,
  [path = '', ...program]: readonly string[],
  options: OptionValues,
): Promise<number> {
  const command = programOf(program, 'lock PATH');
  const it = new Lock(await context.client(), context.path(path), nameOption(options));
  const grant = await waiting(context, () =>
    options.try === true ? it.tryAcquire() : it.acquire(waitOf(context, options)),
  );
  if (grant === null) {
    const holder = await it.holder();
    const held = heldBy(holder === null ? [] : [holder]);
    throw new CommandError('refused', `${escaped(it.path)} is ${held}`);
  }
  try {
    return await underHold(context, command, options, {
      held: grant.signal,
      what: it.path,
      variables: { DROVER_FENCING_TOKEN: String(grant.fencingToken), DROVER_LOCK_PATH: grant.path },
    });
  } finally {
    await grant.release().catch((error) => tellUnreleased(context, it.path, error));
  }
}

export async function semaphore(
  context: Context,
  [path = '', ...program]: readonly string[],
  options: OptionValues,
): Promise<number> {
  const command = programOf(program, 'semaphore PATH --limit N');
  if (options.limit === undefined) {
    throw new CommandError(
      'usage',
      '--limit: how many may hold it at once; the same number everywhere',
    );
  }
  const limit = within(options.limit, '--limit', 1, 1_000_000, 1);
  const count = within(options.count, '--count', 1, limit, 1);
  const client = await context.client();
  const it = new Semaphore(client, context.path(path), { limit, ...nameOption(options) });
  const leases = await waiting(context, () =>
    options.try === true
      ? it.tryAcquire({ count })
      : it.acquire({ count, ...waitOf(context, options) }),
  );
  if (leases === null) {
    const why = `has too few leases left, ${heldBy(await it.holders())}`;
    throw new CommandError('refused', `${escaped(it.path)} ${why}`);
  }
  try {
    return await underHold(context, command, options, {
      held: leases.signal,
      what: it.path,
      variables: {},
    });
  } finally {
    await leases.release().catch((error) => tellUnreleased(context, it.path, error));
  }
}

/** Runs the program once elected. When the term ends before it does, it is ended, and we stand again. */
export async function elect(
  context: Context,
  [path = '', ...program]: readonly string[],
  options: OptionValues,
): Promise<number> {
  const command = programOf(program, 'elect PATH');
  const { signal, output } = context;
  const client = await context.connect(undefined, { renew: true });
  const graceMs = graceOf(options);
  const id = typeof options.name === 'string' ? { id: options.name } : {};
  // The node is given back after the program has ended, and that has its own grace.
  const election = new Election(client, context.path(path), { ...id, graceMs: graceMs + 1_000 });
  try {
    for await (const term of election.terms({ signal })) {
      output.tell(`elected, epoch ${term.epoch}`);
      const code = await underHold(context, command, options, {
        held: term.signal,
        what: election.path,
        variables: { DROVER_EPOCH: String(term.epoch), DROVER_FENCING_TOKEN: String(term.epoch) },
      });
      if (!term.signal.aborted || options.once === true || signal.aborted) return code;
      output.tell('standing again');
    }
    return exitCodes.unknown;
  } finally {
    await election.close();
  }
}

/** Makes a service known for as long as a program runs. */
export async function register(
  context: Context,
  [path = '', name = '', ...program]: readonly string[],
  options: OptionValues,
): Promise<number> {
  const command = programOf(program, 'register PATH NAME --port N');
  const client = await context.connect(undefined, { renew: true });
  const discovery = new ServiceDiscovery(client, context.path(path));
  const port = options.port === undefined ? null : within(options.port, '--port', 1, 65_535, 0);
  const address = typeof options.address === 'string' ? options.address : hostname();
  if (address === '') throw new CommandError('usage', '--address: a name or an address is wanted');
  const id = typeof options.name === 'string' ? { id: options.name } : {};
  try {
    const payload = payloadOf(options.payload);
    const registration = await discovery.register(
      { name, address, port, payload, ...id },
      { signal: context.signal },
    );
    context.output.tell(`registered at ${escaped(registration.path ?? name)}`);
    // A lost session is registered anew: the program serves on meanwhile.
    const held = new AbortController().signal;
    const { code, stopped } = await runChild(
      command,
      childOptions(context, options, held, {
        DROVER_SERVICE_ID: registration.instance.id,
      }),
    );
    return stopped === 'interrupted' ? exitCodes.interrupted : code;
  } finally {
    await discovery.close();
  }
}

// ── what they share ───────────────────────────────────────────────────────────────────────────────

interface Hold {
  readonly held: AbortSignal;
  readonly what: string;
  readonly variables: Readonly<Record<string, string>>;
}

async function underHold(
  context: Context,
  command: Program,
  options: OptionValues,
  { held, what, variables }: Hold,
): Promise<number> {
  const { code, stopped } = await runChild(
    command,
    childOptions(context, options, held, variables),
  );
  if (stopped === 'interrupted') return exitCodes.interrupted;
  if (stopped === undefined) return code;
  const why = held.reason instanceof Error ? `: ${held.reason.message}` : '';
  context.output.tell(
    `${escaped(what)} is no longer certainly ours${escaped(why)}; ${escaped(command[0])} was ended (${code})`,
  );
  return exitCodes.unknown;
}

export function childOptions(
  { signal, environment }: Context,
  options: OptionValues,
  held: AbortSignal,
  variables: Readonly<Record<string, string>>,
) {
  return { held, signal, graceMs: graceOf(options), environment: { ...environment, ...variables } };
}

export function programOf(program: readonly string[], usage: string): Program {
  const [command = '', ...args] = program;
  if (command !== '') return [command, ...args];
  throw new CommandError('usage', `what is to be run? drover ${usage} -- command…`);
}

function graceOf({ killAfter }: OptionValues): number {
  return 1_000 * within(killAfter, '--kill-after', 0, 3_600, 5);
}

export function waitOf({ signal }: Context, { timeout }: OptionValues) {
  const timeoutMs =
    timeout === undefined
      ? {}
      : { timeoutMs: Math.max(1, 1_000 * within(timeout, '--timeout', 0, 1e6, 0)) };
  return { signal, ...timeoutMs };
}

function nameOption({ name }: OptionValues): { data?: string } {
  return typeof name === 'string' ? { data: name } : {};
}

async function waiting<T>({ output }: Context, work: () => Promise<T>): Promise<T> {
  output.status('waiting for our turn');
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof LockTimeoutError)) throw error;
    throw new CommandError('refused', error.message, { cause: error });
  }
}

/** Who keeps us from it, as far as a message has room; nobody where they have just let go. */
function heldBy(holders: readonly Contender[]): string {
  const named = holders.slice(0, 3).map(({ data, sessionId }) => {
    const text = escaped(data.subarray(0, 100).toString('utf8'));
    return `${text || 'somebody who left no name'} (session 0x${sessionId.toString(16)})`;
  });
  const more = holders.length - named.length;
  if (more > 0) named.push(`${more} more`);
  return `held by ${named.join(', ') || 'somebody else'}`;
}

function tellUnreleased({ output }: Context, what: string, error: unknown): void {
  output.tell(
    `${escaped(what)} could not be given back (${escaped((error as Error).message)}); it goes with the session`,
  );
}

function payloadOf(given: OptionValues[string]): unknown {
  if (typeof given !== 'string') return null;
  try {
    return JSON.parse(given);
  } catch (cause) {
    throw new CommandError('usage', `--payload: JSON is wanted (${(cause as Error).message})`, {
      cause,
    });
  }
}
