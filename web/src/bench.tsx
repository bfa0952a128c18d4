/**
 * A bench by hand, and those before it: kept in this browser, so that "did it get slower" has an answer.
 * Each is compared with the one before of the same kind on the same servers.
 */
import { useState } from 'preact/hooks';
import type { BenchView } from '../../src/console/api.ts';
import { count, ms, rate, time } from './format.ts';
import { canWrite, session } from './live.ts';
import { post } from './transport.ts';
import { Choice, Empty, Panel, Table } from './ui.tsx';

const place = 'drover-benches';
const keptMax = 30;
const kinds = ['reads', 'writes'] as const;
const widths = ['1', '10', '100'] as const;

type Kept = BenchView & { readonly servers: string };

function kept(): readonly Kept[] {
  try {
    const list: unknown = JSON.parse(localStorage.getItem(place) ?? '[]');
    return Array.isArray(list) ? (list as Kept[]).slice(0, keptMax) : [];
  } catch {
    return []; // No storage here, or not ours: then nothing is remembered.
  }
}

function keep(list: readonly Kept[]): void {
  try {
    localStorage.setItem(place, JSON.stringify(list.slice(0, keptMax)));
  } catch {
    // As above: the page shows them until it is left.
  }
}

export function Benches() {
  const [list, setList] = useState(kept);
  const [what, setWhat] = useState<(typeof kinds)[number]>('reads');
  const [width, setWidth] = useState<(typeof widths)[number]>('10');
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const run = async () => {
    setBusy(true);
    setError(null);
    try {
      const done = await post<BenchView>('/api/bench', { what, inFlight: Number(width) });
      const next = [{ ...done, servers: session.value?.servers ?? '' }, ...list];
      keep(next);
      setList(next.slice(0, keptMax));
    } catch (failure) {
      setError((failure as Error).message);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Panel
      title="Bench"
      bare
      aside={
        canWrite() ? (
          <>
            <Choice label="What to ask for" options={kinds} value={what} onChange={setWhat} />
            <Choice label="At once" options={widths} value={width} onChange={setWidth} />
            <button type="button" class="button main" disabled={isBusy} onClick={() => void run()}>
              {isBusy ? 'Running…' : 'Run 3 s'}
            </button>
          </>
        ) : (
          <span class="soft">needs --write: it is load on the servers</span>
        )
      }
    >
      {error === null ? null : (
        <p class="note bad" role="alert">
          {error}
        </p>
      )}
      <Table
        label="Benches"
        sortParam="sort2"
        rows={list}
        keyOf={(row) => String(row.atMs)}
        empty={<Empty title="None yet">They are kept in this browser, to compare.</Empty>}
        columns={[
          { name: 'when', by: (row) => row.atMs, cell: (row) => time(row.atMs) },
          { name: 'servers', cell: (row) => <span class="mono">{row.servers}</span> },
          { name: 'what', cell: (row) => `${row.what}, ${count(row.inFlight)} at once` },
          { name: 'rate', num: true, by: (row) => row.ratePerS, cell: (row) => rate(row.ratePerS) },
          { name: 'p50', num: true, by: (row) => row.p50Ms, cell: (row) => ms(row.p50Ms) },
          { name: 'p99', num: true, by: (row) => row.p99Ms, cell: (row) => ms(row.p99Ms) },
          { name: 'before', title: 'against the one before', cell: (row) => against(row, list) },
        ]}
      />
    </Panel>
  );
}

function against(row: Kept, list: readonly Kept[]): string {
  const before = list.find(
    (one) =>
      one.atMs < row.atMs &&
      one.what === row.what &&
      one.inFlight === row.inFlight &&
      one.servers === row.servers,
  );
  if (!before) return '–';
  const change = Math.round((row.ratePerS / before.ratePerS - 1) * 100);
  return change === 0 ? 'the same' : `${change > 0 ? '+' : ''}${change} % per second`;
}
