/**
 * The data of a node: shown the way that suits it, edited with a check of its version.
 *
 * What is saved is checked twice: by eyes, as a diff, and by ZooKeeper, which refuses it if the node has
 * changed since it was read. Then the draft stays, and the diff is against what stands there now.
 * Text is edited as text; bytes that are no text are edited as base64.
 */
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { BodyOf, ChangedView, NodeView } from '../../src/console/api.ts';
import { type Charset, charsets, decodeText, encodeText, guessCharset } from './charset.ts';
import { fromBase64, guess, type Shown, show, toBase64, type View, views } from './decode.ts';
import { Diff, Editor } from './edit.tsx';
import { bytes as size, visible } from './format.ts';
import { useKeys } from './keys.tsx';
import { canWrite } from './live.ts';
import { SeenVersions } from './node-seen.tsx';
import { closeDialog, Dialog, openDialog, tell } from './overlay.tsx';
import { param, turn } from './router.ts';
import { post, Refusal } from './transport.ts';
import { Choice } from './ui.tsx';

interface Draft {
  readonly text: string;
  readonly as: 'text' | 'base64';
  readonly charset: Charset;
  /** The version that the draft started from, or that its diff was last shown against. */
  readonly version: number;
}

/** One node's: whoever shows another makes it anew, by its key, so that no draft goes with it. */
export function NodeData(props: {
  readonly node: NodeView;
  readonly reload: () => void;
  /** Told whether there is one, which must not be taken off the page. */
  readonly onDraft: (isThere: boolean) => void;
}) {
  const { node, onDraft } = props;
  const data = useMemo(() => fromBase64(node.data ?? ''), [node.data]);
  const best = useMemo(() => guess(data), [data]);
  const asked = param('as') as View | null;
  const view = asked && views.includes(asked) ? asked : best;
  const guessed = useMemo(() => guessCharset(data), [data]);
  const charset = charsets.find((one) => one === param('charset')) ?? guessed;
  const [draft, setDraft] = useState<Draft | null>(null);
  const hasDraft = draft !== null;
  useEffect(() => {
    onDraft(hasDraft);
    return () => onDraft(false);
  }, [hasDraft, onDraft]);

  const start = () => {
    if (!canWrite() || draft) return;
    const text = decodeText(data, charset);
    const as = text !== null && (view === 'text' || view === 'json') ? 'text' : 'base64';
    const { version } = node.stat;
    setDraft({ as, charset, text: as === 'text' ? text! : toBase64(data), version });
  };
  const startFrom = (text: string) =>
    setDraft({ as: 'text', charset: 'utf-8', text, version: node.stat.version });
  useKeys({ e: { about: 'edit the data', run: start } });

  return (
    <>
      <div class="row wrap">
        <Choice
          label="Show as"
          options={views}
          value={view}
          onChange={(value) => turn({ as: value === best ? '' : value }, 'replace')}
        />
        {view === 'text' || view === 'json' ? (
          <select
            class="field"
            aria-label="Charset"
            value={charset}
            disabled={draft !== null}
            onChange={(event) => {
              const { value } = event.currentTarget;
              turn({ charset: value === guessed ? '' : value }, 'replace');
            }}
          >
            {charsets.map((one) => (
              <option key={one} value={one}>
                {one.toUpperCase()}
              </option>
            ))}
          </select>
        ) : null}
        <span class="soft">
          {node.data === null ? 'null' : size(data.length)}
          {view === best ? '' : ` · looks like ${best}`}
        </span>
        <span class="grow" />
        {canWrite() && !draft ? (
          <button type="button" class="button" onClick={start}>
            Edit <kbd>e</kbd>
          </button>
        ) : null}
      </div>
      {draft ? (
        <Drafting node={node} data={data} draft={draft} setDraft={setDraft} reload={props.reload} />
      ) : (
        <Bytes data={data} view={view} charset={charset} isNull={node.data === null} />
      )}
      <SeenVersions node={node} onEdit={canWrite() && !draft ? startFrom : undefined} />
    </>
  );
}

export function Bytes(props: {
  readonly data: Uint8Array<ArrayBuffer>;
  readonly view: View;
  readonly charset?: Charset;
  readonly isNull?: boolean;
}) {
  const [shown, setShown] = useState<Shown | null>(null);
  useEffect(() => {
    let isOver = false;
    void show(props.data, props.view, props.charset).then((value) => isOver || setShown(value));
    return () => {
      isOver = true;
    };
  }, [props.data, props.view, props.charset]);
  if (props.data.length === 0)
    return <p class="soft">{props.isNull ? 'No data: null.' : 'Empty.'}</p>;
  return (
    <>
      {shown?.note ? <p class="note">{shown.note}</p> : null}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keys must reach it */}
      <section class={`data ${props.view}`} tabIndex={0} aria-label="Data">
        <pre>{shown?.text ?? ''}</pre>
      </section>
    </>
  );
}

function Drafting(props: {
  readonly node: NodeView;
  readonly data: Uint8Array;
  readonly draft: Draft;
  readonly setDraft: (draft: Draft | null) => void;
  readonly reload: () => void;
}) {
  const { node, draft, setDraft } = props;
  const isBehind = node.stat.version !== draft.version;
  const review = () => {
    if (draft.as === 'base64' && !isBase64(draft.text)) {
      openDialog(() => (
        <Dialog title="Not base64">
          <div class="body">The text holds characters that base64 does not have.</div>
        </Dialog>
      ));
      return;
    }
    if (draft.as === 'text' && encodeText(draft.text, draft.charset) === null) {
      openDialog(() => (
        <Dialog title={`Not ${draft.charset.toUpperCase()}`}>
          <div class="body">
            The text holds characters that {draft.charset.toUpperCase()} does not have.
          </div>
        </Dialog>
      ));
      return;
    }
    openDialog(() => (
      <Review
        node={node}
        before={
          draft.as === 'text' ? (decodeText(props.data, draft.charset) ?? '') : toBase64(props.data)
        }
        draft={draft}
        onSaved={() => {
          setDraft(null);
          props.reload();
        }}
        onConflict={props.reload}
      />
    ));
  };
  return (
    <>
      {isBehind ? (
        <p class="note warn" role="alert">
          Somebody changed this node: it is at version {node.stat.version}, your draft began at{' '}
          {draft.version}. The diff before saving is against what stands there now.
        </p>
      ) : null}
      {draft.as === 'base64' ? <p class="note">Not text: edited as base64.</p> : null}
      <Editor
        text={draft.text}
        isJson={draft.as === 'text' && /^\s*[[{]/.test(draft.text)}
        label={`Data of ${visible(node.path)}`}
        onChange={(text) => setDraft({ ...draft, text })}
        onSave={review}
      />
      <div class="row">
        <button type="button" class="button main" onClick={review}>
          Review and save
        </button>
        <button type="button" class="button" onClick={() => setDraft(null)}>
          Discard
        </button>
        <span class="soft">
          <kbd>Ctrl S</kbd> reviews
        </span>
      </div>
    </>
  );
}

function Review(props: {
  readonly node: NodeView;
  readonly before: string;
  readonly draft: Draft;
  readonly onSaved: () => void;
  readonly onConflict: () => void;
}) {
  const { node, draft } = props;
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    setError(null);
    const body: BodyOf<'set'> = {
      path: node.path,
      data:
        draft.as === 'text'
          ? toBase64(encodeText(draft.text, draft.charset)!)
          : draft.text.replace(/\s/g, ''),
      version: node.stat.version,
    };
    try {
      const { stat } = await post<ChangedView>('/api/node/set', body);
      closeDialog();
      tell(`Saved ${visible(node.path)} as version ${stat?.version ?? '?'}.`);
      props.onSaved();
    } catch (failure) {
      setBusy(false);
      if (failure instanceof Refusal && failure.code === 'BAD_VERSION') {
        setError(
          'Somebody was faster: nothing was saved. Close this, look at the new diff, and save again.',
        );
        props.onConflict();
      } else setError((failure as Error).message);
    }
  };
  return (
    <Dialog
      title={`Save ${visible(node.path)}`}
      class="wide"
      onSubmit={() => void save()}
      footer={
        <>
          <button type="button" class="button" onClick={closeDialog}>
            Back
          </button>
          <button
            type="submit"
            class="button main"
            // biome-ignore lint/a11y/noAutofocus: a dialog takes the focus anyway, and this is what it asks
            autoFocus
            disabled={isBusy || props.before === draft.text}
          >
            Save as version {node.stat.version + 1}
          </button>
        </>
      }
    >
      <div class="body">
        {props.before === draft.text ? <p>Nothing has changed.</p> : null}
        <Diff before={props.before} after={draft.text} label="What would change" />
        {error === null ? null : (
          <p class="note bad" role="alert">
            {error}
          </p>
        )}
      </div>
    </Dialog>
  );
}

function isBase64(text: string): boolean {
  try {
    atob(text.replace(/\s/g, ''));
    return true;
  } catch {
    return false; // That is the answer.
  }
}
