/**
 * Copies a subtree, or several, to another place of the tree or to another context. First it shows what it
 * would do, node by node; only then can it be done, and what overwrites wants a name typed.
 */
import { useState } from 'preact/hooks';
import type { BodyOf, ContextsView, CopyStep, CopyView } from '../../src/console/api.ts';
import { asTyped, Buttons, Failure, isTyped, Typed } from './confirm.tsx';
import { contextName } from './contexts.tsx';
import { count, joinPath, nameOf, plural, visible } from './format.ts';
import { session, useAnswer } from './live.ts';
import type { Carried } from './node-carry.ts';
import { closeDialog, Dialog, openDialog, tell } from './overlay.tsx';
import { context, href } from './router.ts';
import { inContext, post } from './transport.ts';

export const askCopy = (paths: readonly string[]) =>
  openDialog(() => <Copy from={context} paths={paths} />);

/** What was carried here, from this place or another: it goes below `parent`, each by its name. */
export const askPaste = ({ from, paths }: Carried, parent: string) =>
  openDialog(() => (
    <Copy
      from={from}
      paths={paths}
      to={paths.length === 1 ? joinPath(parent, nameOf(paths[0]!)) : parent}
    />
  ));

const marks: Readonly<Record<CopyStep, readonly [mark: string, tone: string]>> = {
  create: ['+ new', 'good'],
  change: ['~ overwrite', 'warn'],
  acl: ['~ its ACL', 'warn'],
  skip: ['= differs, left as it is', 'soft'],
  ephemeral: ['· ephemeral, left out', 'soft'],
};

function Copy(props: {
  readonly from: string | null;
  readonly paths: readonly string[];
  readonly to?: string;
}) {
  const [first = '/'] = props.paths;
  const isOne = props.paths.length === 1;
  const contexts = useAnswer<ContextsView>('/api/contexts');
  const places = contexts.value?.contexts ?? [];
  const [place, setPlace] = useState(context ?? '');
  const [to, setTo] = useState(props.to ?? (isOne ? first : '/'));
  const [overwrites, setOverwrites] = useState(false);
  const [withAcl, setWithAcl] = useState(true);
  const [view, setView] = useState<CopyView | null>(null);
  const [typed, setTyped] = useState('');
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const name = place === '' ? null : place;
  const changed = () => {
    setView(null);
    setTyped('');
    setError(null);
  };
  const run = async () => {
    const input: BodyOf<'copyPreview'> = {
      from: props.from,
      paths: [...props.paths],
      to: to.trim().replace(/(.)\/+$/, '$1'),
      onConflict: overwrites ? 'overwrite' : 'skip',
      withAcl,
    };
    setBusy(true);
    setError(null);
    try {
      if (view === null) {
        setView(await post<CopyView>(inContext('/api/copy/preview', name), input));
      } else {
        const { create, change, acl } = view.counts;
        const body: BodyOf<'copy'> = {
          ...input,
          confirm: view.confirm === null ? null : asTyped(typed, view.confirm),
          create,
          change: change + acl,
        };
        await post<CopyView>(inContext('/api/copy', name), body);
        closeDialog();
        tell(
          `Copied ${plural(create + change + acl, 'node')} to ${input.to}; the audit can undo it.`,
        );
      }
    } catch (failure) {
      setError((failure as Error).message);
    } finally {
      setBusy(false);
    }
  };
  const work = view === null ? 0 : view.counts.create + view.counts.change + view.counts.acl;
  const target = places.find((one) => (one.name ?? '') === place);
  const isClosed = target?.readOnly === true || session.value?.role !== 'editor';
  const isReady =
    view === null
      ? to.startsWith('/')
      : work > 0 &&
        !view.isTooMany &&
        !isClosed &&
        (view.confirm === null || isTyped(typed, view.confirm));
  return (
    <Dialog
      title={`Copy ${isOne ? visible(first) : `${props.paths.length} subtrees`}${
        props.from === context
          ? ''
          : ` of ${visible(props.from ?? 'where the console was started for')}`
      } to…`}
      class="wide"
      onSubmit={() => void run()}
      footer={
        <Buttons
          action={view === null ? 'Look first, write nothing' : `Copy ${plural(work, 'node')}`}
          isReady={isReady && !isBusy}
          isDanger={view?.confirm != null}
        />
      }
    >
      <div class="body">
        <label>
          Context
          <select
            class="field"
            value={place}
            onChange={(event) => {
              setPlace(event.currentTarget.value);
              changed();
            }}
          >
            {places.map((one) => (
              <option key={one.name ?? ''} value={one.name ?? ''}>
                {`${visible(contextName(one))} · ${visible(one.servers)}${one.readOnly ? ' · read-only' : ''}${one.name === context ? ' · this one' : ''}`}
              </option>
            ))}
          </select>
        </label>
        <label>
          {isOne ? 'Path there' : 'Path there, below which each goes by its name'}
          <input
            class="field mono"
            value={to}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => {
              setTo(event.currentTarget.value);
              changed();
            }}
          />
        </label>
        <label class="line">
          <input
            type="checkbox"
            checked={overwrites}
            onChange={(event) => {
              setOverwrites(event.currentTarget.checked);
              changed();
            }}
          />
          Overwrite nodes that are there and differ
        </label>
        <label class="line">
          <input
            type="checkbox"
            checked={withAcl}
            onChange={(event) => {
              setWithAcl(event.currentTarget.checked);
              changed();
            }}
          />
          With their ACLs
        </label>
        {view === null ? null : <Plan view={view} />}
        {view !== null && target?.readOnly ? (
          <p class="note">
            {visible(contextName(target))} is read-only: nothing can be copied there.
          </p>
        ) : null}
        {view?.confirm && !view.isTooMany && !isClosed ? (
          <Typed
            word={view.confirm}
            to={`overwrite ${plural(view.counts.change + view.counts.acl, 'node')}`}
            value={typed}
            onInput={setTyped}
          />
        ) : null}
        <Failure text={error} />
        {name === context ? null : (
          <p class="soft">
            The copy stands in the audit of{' '}
            <a href={href('audit', { context: name ?? '' })}>{visible(name ?? 'its own place')}</a>.
          </p>
        )}
      </div>
    </Dialog>
  );
}

function Plan({ view }: { readonly view: CopyView }) {
  const { create, change, acl, same, skip, ephemeral } = view.counts;
  return (
    <>
      <p role="status">
        {view.isTooMany
          ? 'There are more nodes than one copy may take; drover cp takes any number.'
          : `Would create ${count(create)}, overwrite ${count(change + acl)}, leave ${count(skip)} that differ and ${count(ephemeral)} ephemeral; ${count(same)} are the same. Nothing was written.`}
      </p>
      {view.steps.length > 0 ? (
        <ul class="data plan">
          {view.steps.map(({ step, path }) => (
            <li key={path} class={marks[step][1]}>
              <span class="mono">{visible(path)}</span>
              <span>{marks[step][0]}</span>
            </li>
          ))}
        </ul>
      ) : null}
    </>
  );
}
