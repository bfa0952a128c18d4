/**
 * The palette (Ctrl-K): pages, paths, commands and contexts behind one field.
 *
 * What starts with "/" is a path, and those like it are offered as it is typed (/br/to is /brokers/topics); all else is looked for in
 * the pages and in the command table, which is the command line's own. Enter opens what is marked.
 */
import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { CommandView, ContextsView, ContextView } from '../../src/console/api.ts';
import { visible } from './format.ts';
import { session } from './live.ts';
import { closeDialog, Dialog, openDialog } from './overlay.tsx';
import { usePathsLike } from './path-bar.tsx';
import { context, go, href, pages } from './router.ts';
import { get } from './transport.ts';

interface Entry {
  readonly key: string;
  readonly label: string;
  readonly about: string;
  readonly kind: string;
  readonly to: string;
}

const entriesMax = 40;
const commands = signal<readonly CommandView[] | null>(null);
const contexts = signal<readonly ContextView[]>([]);

export function openPalette(): void {
  openDialog(() => <Palette />);
}

/** The letters of `wanted` in order, somewhere in `text`: 0 is no match, more is better. */
export function score(text: string, wanted: string): number {
  const hay = text.toLowerCase();
  const needle = wanted.toLowerCase();
  const found = hay.indexOf(needle);
  if (found !== -1) return 1000 - found - hay.length / 100;
  let from = 0;
  let gaps = 0;
  for (const letter of needle) {
    const next = hay.indexOf(letter, from);
    if (next === -1) return 0;
    gaps += next - from;
    from = next + 1;
  }
  return Math.max(1, 500 - gaps);
}

function known(text: string): Entry[] {
  const all: Entry[] = [
    ...pages.map((page) => ({
      key: `page ${page}`,
      label: page,
      about: '',
      kind: 'page',
      to: href(page),
    })),
    ...(commands.value ?? []).map(({ name, usage, about, writes }) => ({
      key: `command ${name}`,
      label: usage,
      about,
      kind: writes ? 'command · writes' : 'command',
      to: href('shell', { line: name }),
    })),
    ...contexts.value.map(({ name, servers, origin }) => ({
      key: `place ${name}`,
      label: name === null ? origin : `context ${name}`,
      about: visible(servers),
      kind: 'context',
      to: href('overview', { context: name ?? '' }),
    })),
  ];
  if (text === '') return all.slice(0, entriesMax);
  return all
    .map((entry) => ({
      entry,
      points: Math.max(score(entry.label, text), score(entry.about, text) / 4),
    }))
    .filter(({ points }) => points > 0)
    .toSorted((left, right) => right.points - left.points)
    .slice(0, entriesMax)
    .map(({ entry }) => entry);
}

function Palette() {
  const [text, setText] = useState('');
  const [marked, setMarked] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!session.value?.features.contexts) return;
    get<ContextsView>('/api/contexts').then(
      (view) => {
        contexts.value = view.contexts.filter(({ name }) => name !== context);
      },
      () => {}, // they are in the top bar too, which says what is wrong
    );
  }, []);
  useEffect(() => {
    if (commands.value !== null) return;
    get<CommandView[]>('/api/commands').then(
      (value) => {
        commands.value = value;
      },
      () => {
        commands.value = []; // The console runs without a command table: pages and paths remain.
      },
    );
  }, []);
  const paths = usePathsLike(text, entriesMax).paths.map((path) => ({
    key: path,
    label: visible(path),
    about: '',
    kind: 'path',
    to: href('tree', { path }),
  }));
  const typed: Entry[] =
    text.startsWith('/') && text.length > 1
      ? [
          {
            key: 'typed',
            label: visible(text),
            about: 'open',
            kind: 'path',
            to: href('tree', { path: text.replace(/(.)\/$/, '$1') }),
          },
        ]
      : [];
  const entries = text.startsWith('/')
    ? [...typed, ...paths.filter(({ key }) => key !== text)]
    : known(text);
  const at0 = Math.min(marked, Math.max(0, entries.length - 1));
  const open = (entry: Entry | undefined) => {
    if (!entry) return;
    closeDialog();
    go(entry.to);
  };
  useEffect(() => {
    list.current?.children[at0]?.scrollIntoView({ block: 'nearest' });
  }, [at0]);
  return (
    <Dialog
      title="Go to a page, path or command"
      class="palette"
      hideTitle
      onSubmit={() => open(entries[at0])}
    >
      <input
        type="text"
        role="combobox"
        aria-label="Go to a page, path or command"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={entries.length > 0 ? `palette-${at0}` : undefined}
        placeholder="a page, a /path or a command"
        autocomplete="off"
        spellcheck={false}
        autoFocus
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setMarked(0);
        }}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown') setMarked(Math.min(at0 + 1, entries.length - 1));
          else if (event.key === 'ArrowUp') setMarked(Math.max(at0 - 1, 0));
          else if (event.key === 'Tab' && entries[at0]?.kind === 'path')
            setText(`${entries[at0].key === 'typed' ? text : entries[at0].key}/`);
          else return;
          event.preventDefault();
        }}
      />
      <div class="list" id="palette-list" role="listbox" aria-label="Found" ref={list}>
        {entries.map((entry, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the keys
          // biome-ignore lint/a11y/useFocusableInteractive: named by aria-activedescendant
          <div
            key={entry.key}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === at0}
            onClick={() => open(entry)}
          >
            <span class={entry.kind === 'page' ? '' : 'mono'}>{entry.label}</span>
            <span class="soft clip">{entry.about}</span>
            <span class="kind">{entry.kind}</span>
          </div>
        ))}
      </div>
      {entries.length === 0 ? <p class="empty">Nothing matches.</p> : null}
    </Dialog>
  );
}
