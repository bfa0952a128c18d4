/**
 * The parts that every page is put together from: panels, tables, badges, sparklines, empty states.
 *
 * All text goes in as text nodes. Nothing here knows of ZooKeeper, and nothing here asks the server.
 */
import type { ComponentChildren } from 'preact';
import { count } from './format.ts';
import { param, turn } from './router.ts';

export type Tone = 'good' | 'warn' | 'bad' | 'blue' | 'accent' | '';

export function Badge(props: {
  readonly tone?: Tone;
  readonly title?: string;
  readonly children: ComponentChildren;
}) {
  return (
    <span class={`badge ${props.tone ?? ''}`} title={props.title}>
      {props.children}
    </span>
  );
}

export function Panel(props: {
  readonly title: ComponentChildren;
  readonly aside?: ComponentChildren;
  readonly bare?: boolean;
  readonly children: ComponentChildren;
}) {
  return (
    <section class="panel">
      <header>
        <h2 class="grow">{props.title}</h2>
        {props.aside}
      </header>
      {props.bare ? props.children : <div class="pad">{props.children}</div>}
    </section>
  );
}

export function Head(props: {
  readonly title: string;
  readonly about?: ComponentChildren;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="head">
      <h1>{props.title}</h1>
      <span class="soft grow">{props.about}</span>
      {props.children}
    </div>
  );
}

export function Empty(props: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{props.title}</strong>
      {props.children}
    </div>
  );
}

export function Facts(props: { readonly rows: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {props.rows.map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </>
      ))}
    </dl>
  );
}

export interface Column<T> {
  readonly name: string;
  readonly title?: string;
  readonly num?: boolean;
  readonly cell: (row: T) => ComponentChildren;
  /** By what the column sorts; without it, it does not. */
  readonly by?: (row: T) => string | number;
}

/** A table of at most a few thousand rows; sorted by a column that stands in the URL. */
export function Table<T>(props: {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  readonly sortParam?: string;
  readonly rowClass?: (row: T) => string;
  readonly empty?: ComponentChildren;
  readonly shownMax?: number;
}) {
  const sortParam = props.sortParam ?? 'sort';
  const sort = param(sortParam);
  const isDown = sort?.startsWith('-') ?? false;
  const column = props.columns.find(({ name, by }) => by && name === sort?.replace(/^-/, ''));
  const rows = column?.by ? sorted(props.rows, column.by, isDown) : props.rows;
  const max = props.shownMax ?? 500;
  if (rows.length === 0) return <>{props.empty ?? <Empty title="Nothing here" />}</>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section class="scroll" tabIndex={0} aria-label={props.label}>
      <table>
        <thead>
          <tr>
            {props.columns.map(({ name, title, num, by }) => (
              <th
                key={name}
                class={num ? 'num' : ''}
                scope="col"
                aria-sort={
                  column?.name === name ? (isDown ? 'descending' : 'ascending') : undefined
                }
              >
                {by ? (
                  <button
                    type="button"
                    onClick={() =>
                      turn({ [sortParam]: sort === name ? `-${name}` : name }, 'replace')
                    }
                  >
                    {title ?? name}
                    {column?.name === name ? (isDown ? ' ↓' : ' ↑') : ''}
                  </button>
                ) : (
                  (title ?? name)
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, max).map((row) => (
            <tr key={props.keyOf(row)} class={props.rowClass?.(row) ?? ''}>
              {props.columns.map(({ name, num, cell }) => (
                <td key={name} class={num ? 'num' : ''}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > max ? (
        <p class="note">
          {count(rows.length - max)} more are not shown; narrow the filter to find them.
        </p>
      ) : null}
    </section>
  );
}

function sorted<T>(rows: readonly T[], by: (row: T) => string | number, isDown: boolean): T[] {
  const sign = isDown ? -1 : 1;
  return rows.toSorted((left, right) => {
    const a = by(left);
    const b = by(right);
    return (
      sign *
      (typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b)))
    );
  });
}

/** A filter that stands in the URL. */
export function Filter(props: {
  readonly name?: string;
  readonly label: string;
  readonly placeholder?: string;
}) {
  const name = props.name ?? 'q';
  return (
    <input
      class="field"
      type="search"
      data-filter
      aria-label={props.label}
      placeholder={props.placeholder ?? `${props.label}  ( / )`}
      value={param(name) ?? ''}
      onInput={(event) => turn({ [name]: event.currentTarget.value }, 'replace')}
    />
  );
}

export function matches(
  text: string | null,
  ...fields: readonly (string | null | undefined)[]
): boolean {
  if (!text) return true;
  const wanted = text.toLowerCase();
  return fields.some((field) => field?.toLowerCase().includes(wanted));
}

/** A line without axes: the shape of the last minutes. The last value stands beside it as text. */
export function Sparkline(props: {
  readonly values: readonly (number | null)[];
  readonly label: string;
}) {
  const values = props.values.map((value) => value ?? 0);
  if (values.length < 2)
    return <svg class="spark" role="img" aria-label={`${props.label}: no values yet`} />;
  const max = Math.max(...values, 1e-9);
  const points = values.map(
    (value, at) =>
      `${((at / (values.length - 1)) * 100).toFixed(2)},${(30 - (value / max) * 28).toFixed(2)}`,
  );
  return (
    <svg
      class="spark"
      viewBox="0 0 100 32"
      preserveAspectRatio="none"
      role="img"
      aria-label={props.label}
    >
      <path class="area" d={`M0,32 L${points.join(' L')} L100,32 Z`} />
      <path d={`M${points.join(' L')}`} />
    </svg>
  );
}

export function Meter(props: {
  readonly value: number;
  readonly label: string;
  readonly tone?: Tone;
}) {
  const share = Math.max(0, Math.min(1, props.value));
  return (
    <div
      class={`meter ${props.tone ?? ''}`}
      role="img"
      aria-label={props.label}
      title={props.label}
    >
      <i style={{ width: `${(share * 100).toFixed(1)}%` }} />
    </div>
  );
}

export function Choice<T extends string>(props: {
  readonly label: string;
  readonly options: readonly T[];
  readonly value: T;
  readonly onChange: (value: T) => void;
  readonly titles?: Readonly<Partial<Record<T, string>>>;
}) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms
    <span class="row" role="group" aria-label={props.label}>
      {props.options.map((option) => (
        <button
          key={option}
          type="button"
          class="button small"
          aria-pressed={option === props.value}
          onClick={() => props.onChange(option)}
        >
          {props.titles?.[option] ?? option}
        </button>
      ))}
    </span>
  );
}
