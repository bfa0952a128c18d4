/** The terms of an election: who led when, by which epoch, and for how long. */
import type { TermsView, TermView } from '../../src/console/api.ts';
import { count, duration, time, visible } from './format.ts';
import { nowMs, useAnswer } from './live.ts';
import { href, turn } from './router.ts';
import { at } from './transport.ts';
import { Badge, Empty, Panel, Table } from './ui.tsx';

const who = ({ id, session, name }: TermView) => visible(id || session || name);

function led({ sinceMs, untilMs }: TermView): string {
  if (sinceMs === null) return untilMs === null ? 'leads' : `until ${time(untilMs)}`;
  const length = duration(Math.max(0, (untilMs ?? nowMs.value) - sinceMs));
  return untilMs === null ? `leads for ${length}` : `${time(sinceMs)} for ${length}`;
}

/** The last few, where the election is shown. */
export function LastTerms(props: {
  readonly election: string;
  readonly terms: readonly TermView[];
}) {
  const { election, terms } = props;
  return (
    <div class="stack">
      <ul class="soft" aria-label="Last terms">
        {terms.map((term) => (
          <li key={term.name}>
            <strong>{who(term)}</strong> {led(term)}
            {term.epoch === null ? '' : `, epoch ${term.epoch}`}
          </li>
        ))}
      </ul>
      <div class="row">
        <a
          class="button small"
          href={href('recipes', { terms: election })}
          onClick={(event) => {
            event.preventDefault();
            turn({ terms: election });
          }}
        >
          All terms
        </a>
      </div>
    </div>
  );
}

export function Terms(props: { readonly election: string }) {
  const answer = useAnswer<TermsView>(at('/api/recipes/terms', { path: props.election }), [
    'recipes',
  ]);
  const view = answer.value?.path === props.election ? answer.value : null;
  return (
    <Panel
      title={`Terms of ${visible(props.election)}`}
      aside={
        <button type="button" class="button small" onClick={() => turn({ terms: '' })}>
          Close
        </button>
      }
      bare
    >
      {answer.error ? <p class="note bad">{answer.error.message}</p> : null}
      {view ? (
        <>
          <p class="soft pad">
            {view.from === 'logs'
              ? 'Out of the transaction logs of the server, as far as they reach back'
              : `As the console saw it since ${time(view.seenSinceMs ?? 0)}`}
            {view.isCut ? `; the newest ${count(view.terms.length)} are shown` : ''}. The epoch is
            the czxid of the node that won, and grows with every term.
          </p>
          <Table
            label="Terms"
            sortParam="termsort"
            rows={view.terms}
            keyOf={(row) => row.name}
            columns={columns}
            empty={<Empty title="Nobody has led yet" />}
          />
        </>
      ) : null}
    </Panel>
  );
}

const columns = [
  {
    name: 'leader',
    by: (row: TermView) => who(row),
    cell: (row: TermView) => (
      <span class="row">
        <strong>{who(row)}</strong>
        {row.untilMs === null ? <Badge tone="good">leads</Badge> : null}
      </span>
    ),
  },
  {
    name: 'since',
    by: (row: TermView) => row.sinceMs ?? 0,
    cell: (row: TermView) => (row.sinceMs === null ? 'before the first look' : time(row.sinceMs)),
  },
  {
    name: 'until',
    by: (row: TermView) => row.untilMs ?? Number.MAX_SAFE_INTEGER,
    cell: (row: TermView) => (row.untilMs === null ? '–' : time(row.untilMs)),
  },
  {
    name: 'length',
    num: true,
    by: (row: TermView) => (row.sinceMs === null ? -1 : (row.untilMs ?? nowMs.value) - row.sinceMs),
    cell: (row: TermView) =>
      row.sinceMs === null
        ? 'unknown'
        : duration(Math.max(0, (row.untilMs ?? nowMs.value) - row.sinceMs)),
  },
  { name: 'epoch', num: true, cell: (row: TermView) => row.epoch ?? 'unknown' },
  {
    name: 'session',
    cell: (row: TermView) =>
      row.session === null ? (
        'unknown'
      ) : (
        <a class="mono" href={href('sessions', { name: row.session })}>
          {row.session}
        </a>
      ),
  },
];
