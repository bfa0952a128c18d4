/** The editor and the diff as components: they load their chunk, and say so when that fails. */
import { useEffect, useRef, useState } from 'preact/hooks';

const load = () => import('./editor.ts');

export function Editor(props: {
  readonly text: string;
  readonly isJson: boolean;
  readonly label: string;
  readonly onChange: (text: string) => void;
  readonly onSave: () => void;
}) {
  const { element, error } = useMounted(
    (parent, editor) => {
      const now = { ...props };
      return editor.mountEditor(parent, {
        ...now,
        onChange: (text) => latest.current.onChange(text),
        onSave: () => latest.current.onSave(),
      });
    },
    // Once: a new editor while somebody types would lose the place and what can be undone.
    [],
  );
  const latest = useRef(props);
  latest.current = props;
  return error === null ? <div class="editor" ref={element} /> : <p class="note bad">{error}</p>;
}

export function Diff(props: {
  readonly before: string;
  readonly after: string;
  readonly label: string;
}) {
  const { element, error } = useMounted(
    (parent, editor) => editor.mountDiff(parent, props),
    [props.before, props.after],
  );
  return error === null ? <div class="editor" ref={element} /> : <p class="note bad">{error}</p>;
}

type Chunk = Awaited<ReturnType<typeof load>>;

function useMounted(
  mount: (parent: HTMLElement, editor: Chunk) => { destroy: () => void },
  again: readonly unknown[],
) {
  const element = useRef<HTMLDivElement>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    let mounted: { destroy: () => void } | null = null;
    let isOver = false;
    load().then(
      (editor) => {
        if (!isOver && element.current) mounted = mount(element.current, editor);
      },
      (failure: Error) => setError(`The editor could not be loaded: ${failure.message}`),
    );
    return () => {
      isOver = true;
      mounted?.destroy();
    };
  }, again);
  return { element, error };
}
