/**
 * Who is connected and who watches what, as far as the servers tell: `cons`, `dump`, `wchs`, `wchp`, `wchc`.
 *
 * A server tells of its own clients alone, so that all are asked. What one does not answer is said in
 * `unknown`, by name, and never shown as 0. Lines of servers come from strangers: each is taken apart by a
 * pattern, and one that fits none is left out.
 */

import { ConsoleError } from './console-error.ts';
import { hex } from './node-text.ts';
import type { ConsoleSources, WordAnswer } from './sources.ts';
import type {
  ClientRow,
  NodeWatchesView,
  SessionDetail,
  SessionsView,
  WatchesView,
} from './views.ts';

interface PageInput {
  readonly offset: number;
  readonly limit: number;
  readonly filter: string;
}

const herdAt = 100;
/** Lines that are read of one answer. */
const linesMax = 200_000;
const shownSessions = 50;
/** Paths of one session. */
const pathsMax = 10_000;
const keptMs = 1_000;

type Words = 'cons' | 'dump' | 'wchs' | 'wchp' | 'wchc';

export class Clients {
  readonly #sources: ConsoleSources;
  readonly #signal: AbortSignal;
  readonly #answers = new Map<Words, { atMs: number; answer: Promise<readonly WordAnswer[]> }>();

  /** @param signal aborts when nobody asks any more. */
  constructor(sources: ConsoleSources, signal: AbortSignal) {
    this.#sources = sources;
    this.#signal = signal;
  }

  async sessions(page: PageInput): Promise<SessionsView> {
    const [cons, dump, wchc] = await Promise.all([
      this.#ask('cons'),
      this.#ask('dump'),
      this.#ask('wchc'),
    ]);
    const rows = await this.#rows(cons.texts, dump.texts, wchc.texts);
    const wanted = page.filter.toLowerCase();
    const matching = rows.filter(({ session, address, server }) =>
      `${session ?? ''} ${address} ${server}`.toLowerCase().includes(wanted),
    );
    return {
      rows: matching.slice(page.offset, page.offset + page.limit),
      total: rows.length,
      matching: matching.length,
      unknown: [...cons.unknown, ...dump.unknown, ...wchc.unknown],
      canExpire: this.#sources.ownServer !== undefined,
    };
  }

  async session(id: string): Promise<SessionDetail> {
    if (!/^0x[0-9a-f]{1,16}$/.test(id)) {
      throw new ConsoleError('BAD_INPUT', 'name: a session as 0x… is wanted');
    }
    const [cons, dump, wchc] = await Promise.all([
      this.#ask('cons'),
      this.#ask('dump'),
      this.#ask('wchc'),
    ]);
    const rows = await this.#rows(cons.texts, dump.texts, wchc.texts);
    const of = (found: Map<string, string[]>, isTold: boolean) =>
      isTold ? (found.get(id) ?? []).slice(0, pathsMax).flatMap((path) => this.#below(path)) : null;
    return {
      session: id,
      client: rows.find(({ session }) => session === id) ?? null,
      ephemerals: of(ephemeralsIn(dump.texts), dump.texts.length > 0),
      watches: of(groupsIn(wchc.texts), wchc.texts.length > 0),
    };
  }

  /** Who watches one node, and how. */
  async watchesOf(path: string): Promise<NodeWatchesView> {
    const wchp = await this.#ask('wchp');
    const full = this.#above(path);
    const kinds = (await this.#sources.ownServer?.watchKinds())?.get(full);
    const sessions = wchp.texts.length === 0 ? null : (groupsIn(wchp.texts).get(full) ?? []);
    return {
      path,
      sessions: sessions?.slice(0, pathsMax) ?? null,
      kinds: kinds ?? (this.#sources.ownServer === undefined ? null : []),
      unknown: wchp.unknown,
    };
  }

  async watches(page: PageInput): Promise<WatchesView> {
    const [wchs, wchp] = await Promise.all([this.#ask('wchs'), this.#ask('wchp')]);
    const byPath = new Map(
      [...groupsIn(wchp.texts)].flatMap(([path, sessions]) =>
        this.#below(path).map((own) => [own, sessions] as const),
      ),
    );
    const wanted = page.filter.toLowerCase();
    const matching = [...byPath]
      .filter(([path]) => path.toLowerCase().includes(wanted))
      .sort(([a, x], [b, y]) => y.length - x.length || (a < b ? -1 : 1));
    const bySession = new Map<string, number>();
    for (const sessions of byPath.values()) {
      for (const id of sessions) bySession.set(id, (bySession.get(id) ?? 0) + 1);
    }
    const kinds = await this.#sources.ownServer?.watchKinds();
    const sums = wchs.texts.map(({ text }) => ({
      connections: numberIn(/(\d+) connections watching/, text),
      paths: numberIn(/watching (\d+) paths/, text),
      total: numberIn(/Total watches:(\d+)/, text),
    }));
    const sum = (name: 'connections' | 'paths' | 'total') =>
      sums.length === 0 ? null : sums.reduce((all, one) => all + (one[name] ?? 0), 0);
    return {
      total: sum('total'),
      paths: sum('paths'),
      connections: sum('connections'),
      rows: matching.slice(page.offset, page.offset + page.limit).map(([path, sessions]) => ({
        path,
        sessions: sessions.slice(0, shownSessions),
        count: sessions.length,
        kinds: kinds?.get(this.#above(path)) ?? null,
        isHerd: sessions.length > herdAt,
      })),
      matching: matching.length,
      kinds: kinds === undefined ? null : countsOf(kinds),
      bySession: [...bySession]
        .map(([session, count]) => ({ session, count }))
        .sort((a, b) => b.count - a.count)
        .slice(0, 20),
      herdAt,
      unknown: [...wchs.unknown, ...wchp.unknown],
    };
  }

  /** As servers know it. */
  #above(path: string): string {
    const { chroot } = this.#sources.client;
    if (chroot === '' || chroot === '/') return path;
    return path === '/' ? chroot : `${chroot}${path}`;
  }

  /** Servers tell whole paths; what is outside our chroot is not ours to show. */
  #below(path: string): string[] {
    const { chroot } = this.#sources.client;
    if (chroot === '' || chroot === '/') return [path];
    if (path === chroot) return ['/'];
    return path.startsWith(`${chroot}/`) ? [path.slice(chroot.length)] : [];
  }

  async #rows(cons: Texts, dump: Texts, wchc: Texts): Promise<ClientRow[]> {
    const ephemerals = ephemeralsIn(dump);
    const watches = groupsIn(wchc);
    const { sessionId } = this.#sources.client;
    const own = sessionId === undefined ? null : hex(sessionId);
    const left = await this.#sources.ownServer?.expiries();
    const nowMs = Date.now();
    return cons.flatMap(({ server, text }) =>
      linesOf(text).flatMap((line) => {
        const client = clientIn(line);
        if (client === null) return [];
        const { session } = client;
        return {
          ...client,
          server,
          expiresMs: expiryOf(session, left, nowMs),
          ephemerals: dump.length > 0 && session ? (ephemerals.get(session)?.length ?? 0) : null,
          watches: wchc.length > 0 && session ? (watches.get(session)?.length ?? 0) : null,
          isConsole: session !== null && session === own,
        };
      }),
    );
  }

  /** Pages that are open at once ask once; so no page that leaves may call it off for the others. */
  async #ask(word: Words) {
    const { ask } = this.#sources;
    if (ask === undefined) return { texts: [] as Texts, unknown: ['nobody can ask the servers'] };
    const nowMs = performance.now();
    let known = this.#answers.get(word);
    if (known === undefined || nowMs - known.atMs > keptMs) {
      const asked = { atMs: nowMs, answer: ask(word, this.#signal) };
      asked.answer.catch(() => {
        if (this.#answers.get(word) === asked) this.#answers.delete(word);
      });
      this.#answers.set(word, asked);
      known = asked;
    }
    const texts: { server: string; text: string }[] = [];
    const unknown: string[] = [];
    for (const answer of await known.answer) {
      if ('error' in answer) unknown.push(`${answer.server}: ${answer.error}`);
      else if (/is not executed because it is not in the whitelist/.test(answer.text)) {
        unknown.push(`${answer.server}: ${word} is not in its 4lw.commands.whitelist`);
      } else if (/not currently serving requests/.test(answer.text)) {
        unknown.push(`${answer.server}: takes no requests now`);
      } else texts.push(answer);
    }
    return { texts: texts as Texts, unknown };
  }
}

type Texts = readonly { readonly server: string; readonly text: string }[];

function linesOf(text: string): string[] {
  return text.split('\n', linesMax);
}

function numberIn(pattern: RegExp, text: string): number | null {
  const found = pattern.exec(text)?.[1];
  return found === undefined ? null : Number(found);
}

type Told = Omit<ClientRow, 'server' | 'expiresMs' | 'ephemerals' | 'watches' | 'isConsole'>;

/** ` /127.0.0.1:46816[1](queued=0,recved=4,sid=0x1000…,lop=PING,est=…,to=30000,…)`, a line a client. */
export function clientIn(line: string): Told | null {
  const match = /^\s*\/?([^\s[]+|\[[^\]]+\]:\d+)\[\d*\]\((.*)\)\s*$/.exec(line);
  if (match === null) return null;
  const facts = new Map(
    match[2]!.split(',').map((pair) => {
      const at = pair.indexOf('=');
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
  const number = (name: string) => {
    const text = facts.get(name);
    return text !== undefined && /^\d+(\.\d+)?$/.test(text) ? Number(text) : null;
  };
  const sid = facts.get('sid') ?? '';
  return {
    session: /^0x[0-9a-f]{1,16}$/.test(sid) ? sid : null,
    address: match[1]!,
    timeoutMs: number('to'),
    sinceMs: number('est'),
    lastOp: facts.get('lop')?.slice(0, 40) ?? null,
    received: number('recved'),
    sent: number('sent'),
    queued: number('queued'),
    latencyAvgMs: number('avglat'),
    latencyMaxMs: number('maxlat'),
  };
}

function expiryOf(
  session: string | null,
  left: ReadonlyMap<bigint, number> | undefined,
  nowMs: number,
): number | null {
  if (session === null || left === undefined) return null;
  const leftMs = left.get(BigInt.asIntN(64, BigInt(session)));
  return leftMs === undefined ? null : nowMs + leftMs;
}

function countsOf(kinds: ReadonlyMap<string, readonly string[]>): Record<string, number> {
  const counts: Record<string, number> = { data: 0, children: 0, persistent: 0, recursive: 0 };
  for (const of of kinds.values()) for (const kind of of) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

/** A head, then what belongs to it, each behind a tab. */
export function groupsIn(texts: Texts): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const { text } of texts) {
    let current: string[] | undefined;
    for (const line of linesOf(text)) {
      if (line.startsWith('\t')) current?.push(line.slice(1));
      else if (line !== '') {
        const head = line.replace(/^(0x[0-9a-f]+):$/, '$1');
        current = groups.get(head) ?? [];
        groups.set(head, current);
      }
    }
  }
  return groups;
}

/** Every server of an ensemble has them all, so that one answer is as good as all. */
function ephemeralsIn(texts: Texts): Map<string, string[]> {
  const [first] = texts;
  if (first === undefined) return new Map();
  const from = first.text.indexOf('Sessions with Ephemerals');
  if (from === -1) return new Map();
  const to = first.text.indexOf('Connections dump:', from);
  const part = first.text.slice(from, to === -1 ? undefined : to);
  const found = groupsIn([{ server: first.server, text: part }]);
  return new Map([...found].filter(([head]) => head.startsWith('0x')));
}
