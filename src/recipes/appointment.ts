/**
 * An appointment: an operator's word on who is to lead, beside an election that was made `appointable`.
 *
 *   <election>-appointed     a persistent node; JSON { id, by, reason, atMs }, or the bare id as text
 *
 * It never makes anybody leader by itself. It makes the others step aside: they leave the line and join
 * it again behind the one who was named, who then leads by the same rule as always, in a session of its
 * own and with a higher epoch. So an appointment cannot bring about two leaders, and one that names
 * nobody alive changes nothing until that one comes.
 */

import { ArgumentError, type Client, checkClient, isZkError } from '../client/index.ts';
import { checkOptions } from '../support/index.ts';
import { appointTable } from './option-tables.ts';
import { withParents } from './parents.ts';

export interface Appointed {
  readonly id: string;
  readonly by?: string;
  readonly reason?: string;
  /** By the calendar of whoever appointed. */
  readonly atMs?: number;
}

export function appointmentPath(electionPath: string): string {
  return `${electionPath}-appointed`;
}

export class Appointment {
  readonly path: string;
  readonly #client: Client;

  constructor(client: Client, electionPath: string) {
    checkClient('Appointment', client);
    this.path = appointmentPath(electionPath);
    this.#client = client;
  }

  /** Names who is to lead. The word stands until it is replaced or cleared. */
  async appoint(id: string, why: { by?: string; reason?: string } = {}): Promise<Appointed> {
    checkOptions('appoint', why, appointTable);
    if (typeof id !== 'string' || id === '') {
      throw new ArgumentError(
        'id',
        'the id of a candidate is wanted; to appoint nobody, use clear',
      );
    }
    const appointed = { id, ...why, atMs: Date.now() };
    await this.#write(JSON.stringify(appointed));
    return appointed;
  }

  /** Nobody is appointed: whoever leads stays. */
  async clear(): Promise<void> {
    await this.#write('');
  }

  async current(): Promise<Appointed | null> {
    try {
      return parseAppointed((await this.#client.get(this.path)).data);
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return null;
      throw error;
    }
  }

  async #write(data: string): Promise<void> {
    await withParents(this.#client, this.path, undefined, async () => {
      try {
        await this.#client.set(this.path, data);
      } catch (error) {
        if (!isZkError(error, 'NO_NODE')) throw error;
        try {
          await this.#client.create(this.path, data);
        } catch (raced) {
          if (!isZkError(raced, 'NODE_EXISTS')) throw raced;
          await this.#client.set(this.path, data);
        }
      }
    });
  }
}

/** Null when nobody is appointed. Text that is no JSON object is taken for the id itself. */
export function parseAppointed(data: Buffer | null): Appointed | null {
  const text = data?.toString('utf8').trim() ?? '';
  if (text === '') return null;
  try {
    const { id, by, reason, atMs } = JSON.parse(text) as Record<string, unknown>;
    if (typeof id === 'string' && id !== '') {
      return {
        id,
        ...(typeof by === 'string' && { by }),
        ...(typeof reason === 'string' && { reason }),
        ...(typeof atMs === 'number' && { atMs }),
      };
    }
  } catch {
    // Not JSON: an operator may have written the id with zkCli.
  }
  return { id: text };
}
