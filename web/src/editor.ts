/**
 * The text editor and the diff, which are CodeMirror's. A chunk of its own, loaded when first needed.
 *
 * Both stand in a shadow root: there CodeMirror adopts its style sheets instead of writing <style> elements,
 * which the page's Content-Security-Policy would refuse. Colours come through as custom properties.
 * In: text. Out: text, by `onChange`. What is shown is text of the editor, never markup.
 */
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { json } from '@codemirror/lang-json';
import {
  bracketMatching,
  defaultHighlightStyle,
  foldGutter,
  HighlightStyle,
  syntaxHighlighting,
} from '@codemirror/language';
import { unifiedMergeView } from '@codemirror/merge';
import { EditorState, type Extension } from '@codemirror/state';
import {
  drawSelection,
  EditorView,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from '@codemirror/view';

export interface Mounted {
  readonly destroy: () => void;
}

const look = EditorView.theme({
  '&': { height: '100%', color: 'var(--ink)', backgroundColor: 'var(--panel)', fontSize: '12px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.5' },
  '.cm-gutters': {
    backgroundColor: 'var(--raised)',
    color: 'var(--soft)',
    borderRight: '1px solid var(--line)',
  },
  '.cm-content': { caretColor: 'var(--ink)' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-2px' },
  '.cm-selectionBackground, &.cm-focused .cm-selectionBackground': {
    backgroundColor: 'var(--accent-ground) !important',
  },
  '.cm-changedLine, .cm-insertedLine': { backgroundColor: 'var(--good-ground) !important' },
  '.cm-deletedChunk': { backgroundColor: 'var(--bad-ground) !important', color: 'var(--bad)' },
  '.cm-deletedText, .cm-changedText': {
    background: 'none !important',
    textDecoration: 'underline',
    textDecorationThickness: '2px',
  },
  '.cm-collapsedLines': {
    backgroundColor: 'var(--hover)',
    color: 'var(--soft)',
    background: 'var(--hover)',
  },
});

// Same names, colours of the page: readable on both grounds.
const colours = HighlightStyle.define(
  defaultHighlightStyle.specs.map((spec) =>
    spec.color ? { ...spec, color: 'var(--blue)' } : spec,
  ),
);

const base: Extension = [
  lineNumbers(),
  highlightSpecialChars(),
  drawSelection(),
  EditorView.lineWrapping,
  syntaxHighlighting(colours),
  look,
];

export function mountEditor(
  parent: HTMLElement,
  options: {
    text: string;
    isJson: boolean;
    label: string;
    onChange: (text: string) => void;
    onSave: () => void;
  },
): Mounted {
  const lineEnd = lineEndOf(options.text);
  const { view, ...mounted } = mount(parent, options.text, [
    base,
    EditorState.lineSeparator.of(lineEnd),
    EditorView.clipboardInputFilter.of((text) => text.replace(/\r\n?|\n/g, lineEnd)),
    history(),
    foldGutter(),
    bracketMatching(),
    options.isJson ? json() : [],
    EditorView.contentAttributes.of({ 'aria-label': options.label }),
    keymap.of([
      {
        key: 'Mod-s',
        run: () => {
          options.onSave();
          return true;
        },
      },
      ...defaultKeymap,
      ...historyKeymap,
      indentWithTab,
    ]),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) options.onChange(update.state.sliceDoc());
    }),
  ]);
  view.focus(); // who asked to edit can type at once
  return mounted;
}

export function mountDiff(
  parent: HTMLElement,
  options: { before: string; after: string; label: string },
): Mounted {
  return mount(parent, options.after, [
    base,
    EditorState.lineSeparator.of(lineEndOf(options.before, options.after)),
    EditorState.readOnly.of(true),
    EditorView.editable.of(false),
    EditorView.contentAttributes.of({ 'aria-label': options.label, tabindex: '0' }),
    unifiedMergeView({
      original: options.before,
      mergeControls: false,
      collapseUnchanged: { margin: 3, minSize: 6 },
    }),
  ]);
}

/** So that no byte changes but what was edited: where all lines end with CR LF, also those that are typed. */
function lineEndOf(...texts: readonly string[]): string {
  const isCrLf = (text: string) => text.includes('\r\n') && !/\r(?!\n)|(?<!\r)\n/.test(text);
  return texts.every(isCrLf) ? '\r\n' : '\n';
}

function mount(
  parent: HTMLElement,
  text: string,
  extensions: Extension,
): Mounted & { readonly view: EditorView } {
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: 'open' });
  const view = new EditorView({
    state: EditorState.create({ doc: text, extensions }),
    parent: root,
    root,
  });
  return { view, destroy: () => view.destroy() };
}
