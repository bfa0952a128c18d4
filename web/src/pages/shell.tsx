/**
 * The command line in the page: the same table of commands, run by the console, read-only obeyed. What a
 * command prints is shown as text, as a table of its records, or as the JSON that scripts get.
 */
import { signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { CommandView, ShellView } from '../../../src/console/api.ts';
import { visible } from '../format.ts';
import { session, useAnswer } from '../live.ts';
import { param, turn } from '../router.ts';
import { post } from '../transport.ts';
import { Choice, Empty } from '../ui.tsx';

interface Said {
  readonly line: string;
  readonly answer: ShellView | null;
  /** Lines that are records are shown as one. */
  readonly isTable: boolean;
  readonly error: string | null;
}

const modes = ['text', 'table', 'json'] as const;
type Mode = (typeof modes)[number];
const saidMax = 100;
const said = signal<readonly Said[]>([]);
const typed: string[] = [];

export function View() {
  const [line, setLine] = useState(param('line') ?? '');
  const given = param('out');
  const mode = modes.find((one) => one === given) ?? 'text';
  const setMode = (value: Mode) => turn({ out: value === 'text' ? '' : value }, 'replace');
  const [isBusy, setBusy] = useState(false);
  const back = useRef(0);
  const field = useRef<HTMLInputElement>(null);
  const end = useRef<HTMLDivElement>(null);
  const commands = useAnswer<readonly CommandView[]>(
    session.value?.features.shell ? '/api/commands' : null,
  );
  const asked = param('line');
  // Before the next key can come: who types as soon as the page is seen loses nothing.
  useLayoutEffect(() => {
    if (asked !== null) setLine(asked);
    field.current?.focus();
  }, [asked]);
  useEffect(() => end.current?.scrollIntoView({ block: 'end' }), [said.value]);
  if (!session.value?.features.shell) return <Empty title="This console runs without commands" />;
  const run = async () => {
    const text = line.trim();
    if (text === '' || isBusy) return;
    setBusy(true);
    typed.push(text);
    back.current = 0;
    let entry: Said;
    try {
      entry = {
        line: text,
        answer: await post<ShellView>('/api/shell', { line: text, json: mode !== 'text' }),
        isTable: mode === 'table',
        error: null,
      };
    } catch (error) {
      entry = { line: text, answer: null, isTable: false, error: (error as Error).message };
    }
    said.value = [...said.value, entry].slice(-saidMax);
    setLine('');
    if (param('line') !== null) turn({ line: '' }, 'replace');
    setBusy(false);
    field.current?.focus();
  };
  const recall = (by: number) => {
    back.current = Math.max(0, Math.min(typed.length, back.current + by));
    setLine(back.current === 0 ? '' : typed[typed.length - back.current]!);
  };
  const word = line.trimStart().split(/\s/)[0]!;
  const fitting = (commands.value ?? [])
    .filter(({ name }) => word !== '' && name.startsWith(word))
    .slice(0, 6);
  return (
    <div class="console">
      <h1 class="sr">Shell</h1>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keys must reach it */}
      <section class="out" aria-label="Output" tabIndex={0}>
        {said.value.length === 0 ? (
          <p class="soft">
            The commands of <code>drover</code>, without the word itself: <code>ls /</code>,{' '}
            <code>get /path</code>, <code>tree --depth 2</code>, <code>help</code>.
          </p>
        ) : null}
        {said.value.map((entry, index) => (
          <Answer key={index} entry={entry} />
        ))}
        <div ref={end} />
      </section>
      {fitting.length > 0 ? (
        <div class="note hints">
          {fitting.map(({ name, usage, about, writes }) => (
            <div key={name}>
              <code>{usage}</code>{' '}
              <span class="soft">
                {about}
                {writes ? ' (writes)' : ''}
              </span>
            </div>
          ))}
        </div>
      ) : null}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <label class="mono" for="line">
          drover&gt;
        </label>
        <input
          id="line"
          ref={field}
          class="field mono"
          data-filter
          autocomplete="off"
          spellcheck={false}
          value={line}
          readOnly={isBusy}
          onInput={(event) => setLine(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'ArrowUp') recall(1);
            else if (event.key === 'ArrowDown') recall(-1);
            else if (
              event.key === 'Tab' &&
              !event.shiftKey &&
              fitting.length > 0 &&
              !/\s/.test(line)
            )
              setLine(`${fitting[0]!.name} `);
            else return;
            event.preventDefault();
          }}
        />
        <Choice label="Output" options={modes} value={mode} onChange={setMode} />
        <button type="submit" class="button main" disabled={isBusy}>
          Run
        </button>
      </form>
    </div>
  );
}

const lines = (text: string) =>
  text
    .split('\n')
    .map((line) => line.split('\t').map(visible).join('\t'))
    .join('\n');

function Answer({ entry }: { readonly entry: Said }) {
  const records = entry.answer && entry.isTable ? recordsOf(entry.answer.out) : null;
  return (
    <div>
      <div class="said">drover&gt; {visible(entry.line)}</div>
      {entry.error === null ? null : <p class="bad">{entry.error}</p>}
      {records ? (
        <Records rows={records} />
      ) : entry.answer ? (
        <pre>{lines(entry.answer.out)}</pre>
      ) : null}
      {entry.answer?.err ? (
        <pre class={entry.answer.code === 0 ? 'soft' : 'bad'}>{lines(entry.answer.err)}</pre>
      ) : null}
      {entry.answer?.isCut ? <p class="warn">The output was cut.</p> : null}
    </div>
  );
}

type Record1 = Readonly<Record<string, unknown>>;

/** JSON lines, if all lines are objects and there are any. */
function recordsOf(out: string): Record1[] | null {
  const rows = out.split('\n').filter((line) => line !== '');
  if (rows.length === 0 || !rows.every((line) => line.startsWith('{'))) return null;
  try {
    return rows.slice(0, 500).map((line) => JSON.parse(line) as Record1);
  } catch {
    return null; // Not JSON lines: shown as they are.
  }
}

function Records(props: { readonly rows: readonly Record1[] }) {
  const names = [...new Set(props.rows.flatMap((row) => Object.keys(row)))].slice(0, 20);
  const show = (value: unknown) =>
    value === undefined
      ? ''
      : typeof value === 'string'
        ? visible(value)
        : visible(JSON.stringify(value));
  return (
    <div class="panel scroll">
      <table>
        <thead>
          <tr>
            {names.map((name) => (
              <th key={name} scope="col">
                {visible(name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row, index) => (
            <tr key={index}>
              {names.map((name) => (
                <td key={name} class="mono">
                  {show(row[name])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
