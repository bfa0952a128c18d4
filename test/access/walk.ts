/**
 * Sends every cell of the access table to a server and collects the answers. Each cell has two nodes of
 * its own, `/c<number>` and `/c<number>/n`, so that no cell depends on another.
 */

import { Reader } from '../../src/jute/index.ts';
import {
  type Acl,
  DigestMd5Client,
  type MultiPart,
  MultiResponse,
  openAcl,
  type RequestOf,
  SetSASLResponse,
} from '../../src/protocol/index.ts';
import { RawClient } from '../../src/testing/index.ts';
import {
  type Asker,
  type Cell,
  other,
  owner,
  type RuledOp,
  type SystemCell,
  subjects,
} from './table.ts';

export const superDigest = 'super:D/InIHSb7yEEbrWz8b9l71RjZJU=';
export const saslUser = { username: 'ann', password: 'pw' };

/** Not more requests on their way than a server takes without stopping to read. */
const burst = 200;

export class Walk {
  readonly #maker: RawClient;
  readonly #clients: Record<Asker, RawClient>;

  private constructor(maker: RawClient, clients: Record<Asker, RawClient>) {
    this.#maker = maker;
    this.#clients = clients;
  }

  static async start(port: number): Promise<Walk> {
    const connect = async (...proofs: string[]) => {
      const client = await RawClient.connect(port, { timeOut: 60_000 });
      for (const proof of proofs) await prove(client, proof);
      return client;
    };
    const clients = {
      stranger: await connect(),
      ann: await connect(owner),
      bob: await connect(other),
      'sasl user': await connect(),
      super: await connect('super:test'),
    };
    await proveBySasl(clients['sasl user']);
    return new Walk(await connect('super:test', owner), clients);
  }

  /** The answer to each cell, in the order of the cells. */
  async answers(cells: readonly Cell[]): Promise<number[]> {
    const maker = this.#maker;
    await inBursts(cells, (_, at) =>
      succeed(maker.err('create', { path: `/c${at}`, data: null, acl: [...openAcl], flags: 0 })),
    );
    await inBursts(cells, (cell, at) => this.#make(cell, `/c${at}/n`));
    await inBursts(cells, async ({ closed, perms, subject }, at) => {
      if (closed !== 'parent') return;
      const acl = [{ perms, id: subjects[subject].id }];
      await succeed(maker.err('setACL', { path: `/c${at}`, acl, version: -1 }));
    });
    const answers: number[] = [];
    await inBursts(cells, async (cell, at) => {
      answers[at] = await ask(this.#clients[cell.asker], cell, `/c${at}/n`);
    });
    return answers;
  }

  /** A stranger's, who changes no more than the data of these nodes and what is below them. */
  async systemAnswers(cells: readonly SystemCell[]): Promise<number[]> {
    const answers: number[] = [];
    for (const cell of cells) answers.push(await ask(this.#clients.stranger, cell, cell.path));
    return answers;
  }

  async #make({ kind, subject, closed, perms, asker }: Cell, path: string): Promise<void> {
    const acl: Acl[] = closed === 'node' ? [{ perms, id: subjects[subject].id }] : [...openAcl];
    const node = { path, data: null, acl, flags: 0 };
    const maker = this.#maker;
    switch (kind) {
      case 'missing':
        return;
      case 'parent':
        await succeed(maker.err('create', node));
        return succeed(maker.err('create', { ...node, path: `${path}/k`, acl: [...openAcl] }));
      case 'leaf':
        return succeed(maker.err('create', node));
      case 'ephemeral':
        return succeed(maker.err('create', { ...node, flags: 1 }));
      case 'own ephemeral':
        return succeed(this.#clients[asker].err('create', { ...node, flags: 1 }));
      case 'container':
        return succeed(maker.err('createContainer', { ...node, flags: 4 }));
      case 'TTL':
        return succeed(maker.err('createTTL', { ...node, flags: 5, ttl: 1_000_000n }));
    }
  }

  close(): void {
    this.#maker.close();
    for (const client of Object.values(this.#clients)) client.close();
  }
}

async function prove(client: RawClient, proof: string): Promise<void> {
  const request = { type: 0, scheme: 'digest', auth: Buffer.from(proof) };
  const { err } = await client.reply(client.send('auth', request, -4));
  if (err !== 0) throw new Error(`the proof of ${proof} was answered ${err}`);
}

async function proveBySasl(client: RawClient): Promise<void> {
  const negotiation = new DigestMd5Client(saslUser);
  let token: Buffer | null = Buffer.alloc(0);
  for (let step = 0; step < 2; step++) {
    const { err, body } = await client.reply(client.send('sasl', { token }));
    if (err !== 0) throw new Error(`SASL was answered ${err}`);
    token = negotiation.step(SetSASLResponse.read(new Reader(body)).token!);
  }
}

async function inBursts(
  cells: readonly Cell[],
  each: (cell: Cell, at: number) => Promise<void>,
): Promise<void> {
  for (let from = 0; from < cells.length; from += burst) {
    await Promise.all(cells.slice(from, from + burst).map((cell, i) => each(cell, from + i)));
  }
}

async function succeed(answer: Promise<number>): Promise<void> {
  const err = await answer;
  if (err !== 0) throw new Error(`a node of a cell was not made: ${err}`);
}

async function ask(
  client: RawClient,
  { op, way }: Pick<Cell, 'op' | 'way'>,
  path: string,
): Promise<number> {
  const request = requestFor(op, path, `${op}-${way}`);
  if (way === 'alone') return client.err(op, request as RequestOf<typeof op>);
  const { err, body } = await client.reply(client.send(way, [{ op, request } as MultiPart]));
  if (err !== 0) return err;
  const [first] = MultiResponse.read(new Reader(body));
  return first?.op === 'error' ? first.err : 0;
}

function requestFor(op: RuledOp, path: string, child: string): RequestOf<RuledOp> {
  const made = {
    path: `${path === '/' ? '' : path}/${child}`,
    data: null,
    acl: [...openAcl],
    flags: 0,
  };
  const watches = { relativeZxid: 0n, dataWatches: [], existWatches: [], childWatches: [path] };
  switch (op) {
    case 'create':
    case 'create2':
      return made;
    case 'createContainer':
      return { ...made, flags: 4 };
    case 'createTTL':
      return { ...made, flags: 5, ttl: 1_000_000n };
    case 'delete':
    case 'check':
      return { path, version: -1 };
    case 'setData':
      return { path, data: null, version: -1 };
    case 'setACL':
      return { path, acl: [...openAcl], version: -1 };
    case 'exists':
    case 'getData':
    case 'getChildren':
    case 'getChildren2':
      return { path, watch: false };
    case 'getEphemerals':
      return { prefixPath: path };
    case 'addWatch':
      return { path, mode: 0 };
    case 'setWatches':
      return watches;
    case 'setWatches2':
      return { ...watches, persistentWatches: [], persistentRecursiveWatches: [] };
    case 'checkWatches':
    case 'removeWatches':
      return { path, type: 3 };
    case 'deleteContainer':
    case 'getACL':
    case 'getAllChildrenNumber':
    case 'sync':
      return { path };
  }
}
