/**
 * The field above the tree: a path goes there, anything else is looked for below the node in front.
 *
 * A path need not be typed whole: the letters of each name in order are enough, and what fits is offered as
 * it is typed (`/br/to` is /brokers/topics). Enter goes to what is marked, or to what stands in the field.
 */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { PathsView } from '../../src/console/api.ts';
import { visible } from './format.ts';
import { param, turn } from './router.ts';
import { at, get } from './transport.ts';

const offeredMax = 12;
const typingMs = 80;

interface Offer {
  /** What they are like: while somebody types, that is a little behind. */
  readonly text: string;
  readonly paths: readonly string[];
}

const pathsLike = (text: string, most: number, signal?: AbortSignal): Promise<Offer> =>
  get<PathsView>(at('/api/paths', { text, limit: most }), signal).then(
    ({ paths }) => ({ text, paths }),
    // Without a link there is nothing to offer; what is typed can be gone to all the same.
    () => ({ text, paths: [] }),
  );

export function usePathsLike(text: string, most: number): Offer {
  const [found, setFound] = useState<Offer>({ text: '', paths: [] });
  useEffect(() => {
    if (!text.startsWith('/') || text === '/') {
      setFound({ text, paths: [] });
      return;
    }
    const controller = new AbortController();
    const timer = setTimeout(async () => {
      const offer = await pathsLike(text, most, controller.signal);
      if (!controller.signal.aborted) setFound(offer);
    }, typingMs);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text]);
  return found;
}

export function PathBar(props: { readonly path: string }) {
  const [text, setText] = useState(props.path);
  const [isOpen, setOpen] = useState(false);
  const [marked, setMarked] = useState(-1);
  const field = useRef<HTMLInputElement>(null);
  // With the node, not a frame later: that would undo what is typed by then.
  useLayoutEffect(() => setText(param('find') ?? props.path), [props.path]);
  const offer = usePathsLike(isOpen ? text : '', offeredMax);
  const offered = offer.paths;
  const isOffering = isOpen && offered.length > 0;
  const at0 = Math.min(marked, offered.length - 1);
  const go = (wanted: string) => {
    setOpen(false);
    setMarked(-1);
    field.current?.blur();
    if (wanted.startsWith('/')) turn({ path: wanted.replace(/(.)\/+$/, '$1'), find: '' });
    else if (wanted !== '') turn({ find: wanted });
  };
  const submit = async () => {
    const wanted = text.trim();
    if (isOffering && at0 >= 0) return go(offered[at0]!);
    const isWhole = !isOpen || !wanted.startsWith('/') || wanted.endsWith('/');
    if (isWhole) return go(wanted);
    // What is offered may be for the letters before the last.
    const { paths } = offer.text === text ? offer : await pathsLike(text, offeredMax);
    if (field.current?.value !== text) return; // somebody types on
    // Letters of a path that is not there, and one that fits: that one is meant.
    go(paths.length === 0 || paths.includes(wanted) ? wanted : paths[0]!);
  };
  return (
    <form
      class="tools"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <div class="grow offering">
        <input
          ref={field}
          class="field mono"
          data-filter
          role="combobox"
          aria-label="Path, or text to find"
          aria-expanded={isOffering}
          aria-controls="path-list"
          aria-autocomplete="list"
          aria-activedescendant={isOffering && at0 >= 0 ? `path-${at0}` : undefined}
          placeholder="/path, or text to find below"
          autocomplete="off"
          spellcheck={false}
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setOpen(true);
            setMarked(-1);
          }}
          onFocus={(event) => event.currentTarget.select()}
          onBlur={() => setOpen(false)}
          onKeyDown={(event) => {
            if (event.key === 'ArrowDown') setMarked(Math.min(at0 + 1, offered.length - 1));
            else if (event.key === 'ArrowUp') setMarked(Math.max(at0 - 1, -1));
            else if (event.key === 'Tab' && isOffering && !event.shiftKey) {
              setText(`${offered[Math.max(0, at0)]}/`);
              setMarked(-1);
            } else return;
            event.preventDefault();
          }}
        />
        <div class="offered" id="path-list" role="listbox" aria-label="Paths" hidden={!isOffering}>
          {isOffering
            ? offered.map((path, index) => (
                // biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the keys
                // biome-ignore lint/a11y/useFocusableInteractive: named by aria-activedescendant
                <div
                  key={path}
                  id={`path-${index}`}
                  role="option"
                  aria-selected={index === at0}
                  // Before the field loses the focus and the list goes.
                  onMouseDown={(event) => event.preventDefault()}
                  onClick={() => go(path)}
                >
                  {visible(path)}
                </div>
              ))
            : null}
        </div>
      </div>
      <button type="submit" class="button">
        Go
      </button>
    </form>
  );
}
