/**
 * What is asked before something happens to whole subtrees: how many nodes that is, some of them by name, and
 * the name typed. What is done is told the count that was shown, so that it can be refused if there are more.
 */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { DeletePreview } from '../../src/console/api.ts';
import { Buttons, Failure, isTyped, Typed } from './confirm.tsx';
import { count, visible } from './format.ts';
import { closeDialog, Dialog } from './overlay.tsx';

export function SubtreeDialog(props: {
  readonly title: string;
  readonly look: () => Promise<DeletePreview>;
  /** On the button, with and without the count. */
  readonly action: (preview: DeletePreview | null) => string;
  /** What the name is typed for: `to delete`. */
  readonly to: string;
  readonly tooMany: string;
  readonly children: (preview: DeletePreview) => ComponentChildren;
  /** What it throws is shown, and the dialog stays. */
  readonly run: (preview: DeletePreview) => Promise<void>;
}) {
  const [preview, setPreview] = useState<DeletePreview | null>(null);
  const [typed, setTyped] = useState('');
  const [error, setError] = useState<string | null>(null);
  const failed = (failure: unknown) => setError((failure as Error).message);
  useEffect(() => {
    props.look().then(setPreview, failed);
  }, []);
  const isReady = preview !== null && !preview.isTooMany && isTyped(typed, preview.confirm);
  const submit = () => {
    if (preview !== null && isReady) props.run(preview).then(closeDialog, failed);
  };
  return (
    <Dialog
      title={props.title}
      onSubmit={submit}
      footer={<Buttons action={props.action(preview)} isReady={isReady} isDanger />}
    >
      <div class="body">
        {preview ? (
          <>
            <p>{props.children(preview)}</p>
            <pre class="data">
              {preview.sample.map(visible).join('\n')}
              {preview.count > preview.sample.length
                ? `\n… and ${count(preview.count - preview.sample.length)} more`
                : ''}
            </pre>
            {preview.isTooMany ? (
              <p class="note bad">{props.tooMany}</p>
            ) : (
              <Typed
                word={preview.confirm}
                to={props.to}
                value={typed}
                onInput={setTyped}
                takesFocus
              />
            )}
          </>
        ) : error === null ? (
          <p class="soft">Counting…</p>
        ) : null}
        <Failure text={error} />
      </div>
    </Dialog>
  );
}
