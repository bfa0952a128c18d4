/**
 * An election whose leaders stay until they must go, and an operator who appoints one after the other.
 *
 * What must hold is what holds of every leader: no epoch is given twice, and no update is lost. And the
 * operator's word counts: after the faults each who is appointed comes to lead, although whoever leads
 * would stay. The operator is one of the workers, so that what it writes is subject to faults, too.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { Appointment, Election } from '../../src/recipes/index.ts';
import { Fence } from './fenced.ts';
import type { Asked, Situation, Workload } from './workload.ts';

const operator = 'w1';
/** So many questions of the operator's, and somebody else is to lead. */
const asksEach = 10;

class Appointments extends Fence {
  readonly #workers = new Set<string>();
  #asks = 0;
  #leader: string | undefined;
  #epoch = -1n;
  /** After the faults: whom it still has to work for, the present one first. */
  #due: string[] | undefined;

  override answer(asked: Asked): unknown {
    const { worker, what, args } = asked;
    this.#workers.add(worker);
    if (what === 'whom') return this.#whom();
    const [epoch] = args as [bigint];
    if (what === 'enter' && epoch > this.#epoch) {
      this.count('terms');
      this.#leader = worker;
      this.#epoch = epoch;
    }
    return super.answer(asked);
  }

  override async isWell({ sessions }: Situation): Promise<boolean> {
    const workers = [...sessions.keys()];
    this.#due ??= [...workers, workers[0]!];
    if (this.#due.length > 1 && this.#leader === this.#due[0]) {
      this.#due.shift();
      this.count('obeyed');
    }
    return this.#due.length === 1 && this.#leader === this.#due[0];
  }

  #whom(): string {
    if (this.#due !== undefined) return this.#due[0]!;
    this.#asks += 1;
    const workers = [...this.#workers].sort();
    return workers[Math.floor(this.#asks / asksEach) % workers.length]!;
  }
}

export const appointedWorkloads: Readonly<Record<string, Workload>> = {
  appointment: {
    begin({ client, name, ask, stopped }) {
      const election = new Election(client, '/appointable', { id: name, appointable: true });
      const appointment = new Appointment(client, election.path);
      const lead = async () => {
        for await (const { epoch, signal } of election.terms({ signal: stopped })) {
          let seen = await ask('enter', epoch);
          while (seen !== null && !signal.aborted) {
            await client.exists('/').catch(() => {}); // the signal says when it is over
            await delay(2);
            if (signal.aborted) break;
            seen = await ask('write', epoch, seen);
          }
          await ask('leave', epoch);
        }
      };
      const leading = lead().then(
        () => Promise.reject(new Error('the candidate stands no more')),
        (error) => {
          if (!stopped.aborted) throw error;
        },
      );
      leading.catch(() => {}); // the next round says so
      let appointed: string | undefined;
      const operate = async () => {
        const whom = await ask('whom');
        if (whom === appointed) return;
        appointed = undefined; // until it is known that it was written
        await appointment.appoint(whom, { by: name });
        appointed = whom;
      };
      return {
        async round() {
          const turn = name === operator ? operate() : appointment.current();
          await Promise.race([leading, turn]);
          await delay(20);
        },
        close: () => election.close(),
      };
    },
    judge: () => new Appointments(),
  },
};
