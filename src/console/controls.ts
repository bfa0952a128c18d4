/**
 * How an aligned group's limit moves, and how far it may go: changed by the library's own way to do it,
 * written down with what it was, and possible to take back as long as nobody else has changed it since.
 */

import {
  alignPaths,
  continueAlignment,
  listAlignments,
  parseRule,
  pauseAlignment,
  type RuleInput,
  setRule,
  stepAlignment,
} from '../align/index.ts';
import { ArgumentError, type Client } from '../client/index.ts';
import type { AuditLog, Noted } from './audit.ts';
import { type By, wayBack } from './changes.ts';
import { ConsoleError } from './console-error.ts';
import { orNull } from './tree.ts';
import type { AlignRule, ChangedView } from './views.ts';

export interface HoldInput {
  readonly name: string;
  readonly action: 'pause' | 'step' | 'continue';
  /** How many a step has. */
  readonly periods: number;
}

export class Controls {
  readonly #client: Client;
  readonly #audit: AuditLog;

  constructor(client: Client, audit: AuditLog) {
    this.#client = client;
    this.#audit = audit;
  }

  setRule({ name, rule }: { name: string; rule: RuleInput }, by: By): Promise<ChangedView> {
    return this.#change(name, name, () => setRule(this.#client, name, rule), by);
  }

  /** Held where it is, let on by some periods, or let go. */
  hold({ name, action, periods }: HoldInput, by: By): Promise<ChangedView> {
    const act = {
      pause: () => pauseAlignment(this.#client, name),
      step: () => stepAlignment(this.#client, name, { periods }),
      continue: () => continueAlignment(this.#client, name),
    }[action];
    const note = `${name}: ${action}${action === 'step' ? ` ${periods}` : ''}`;
    return this.#change(name, note, act, by);
  }

  async #change(
    name: string,
    note: string,
    act: () => Promise<unknown>,
    { who, call }: By,
  ): Promise<ChangedView> {
    if (!(await listAlignments(this.#client)).includes(name)) {
      throw new ConsoleError('NOT_FOUND', 'there is no such group');
    }
    const { config: path } = alignPaths(name);
    const before = await this.#client.get(path, call).catch(orNull);
    await act().catch((error: unknown) => {
      if (!(error instanceof ArgumentError) || error.argument !== 'group') throw error;
      throw new ConsoleError('CONFLICT', error.message); // nothing to hold yet, or any more
    });
    const after = await this.#client.get(path, call);
    if (after.stat.version === before?.stat.version) {
      throw new ConsoleError('CONFLICT', 'it is so already; nothing was changed');
    }
    const undo =
      before === null
        ? undefined
        : wayBack(path, before.stat.dataLength, async () => {
            parseRule(before.data, path); // what made no sense is not put back
            await this.#client.set(path, before.data, { version: after.stat.version });
          });
    const state = (node: typeof after) => ({
      data: node.data?.toString('base64') ?? null,
      version: node.stat.version,
    });
    const entry = this.#audit.add(
      {
        ...{ action: 'rule', path, who, ok: true, note, count: 1 },
        before: before && state(before),
        after: state(after),
        undo: undo === undefined ? 'no' : 'possible',
      } satisfies Noted,
      undo,
    );
    return { path, stat: null, audit: entry.id };
  }
}

export function ruleInput({ mode, stepMs, lookAhead, driftMs }: AlignRule): RuleInput {
  if (mode === 'period') return { period: stepMs, lookAhead: lookAhead ?? 0 };
  if (mode === 'drift') return { drift: driftMs ?? stepMs, step: stepMs };
  return { off: true, step: stepMs };
}
