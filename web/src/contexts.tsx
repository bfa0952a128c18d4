/** The places that the command line knows by name, to look at one after the other. */
import type { ContextsView, ContextView } from '../../src/console/api.ts';
import { visible } from './format.ts';
import { canWrite, session, useAnswer } from './live.ts';
import { closeDialog, Dialog, openDialog } from './overlay.tsx';
import { context, visit } from './router.ts';
import { Badge } from './ui.tsx';

export const openContexts = () => openDialog(() => <Contexts />);

/** Where the console was started for may be one of those with a name too. */
export const contextName = ({ name, origin }: ContextView) =>
  name ?? /^context (.+)$/.exec(origin)?.[1] ?? 'where the console was started for';

function Contexts() {
  const list = useAnswer<ContextsView>('/api/contexts');
  return (
    <Dialog
      title="Contexts"
      footer={
        <button type="button" class="button" onClick={closeDialog}>
          Close
        </button>
      }
    >
      <div class="body">
        {list.error ? <p class="note bad">{list.error.message}</p> : null}
        <ul class="places">
          {(list.value?.contexts ?? []).map((one) => (
            <li key={one.name ?? ''}>
              <button
                type="button"
                class="place"
                aria-current={one.name === context ? 'true' : undefined}
                onClick={() => (one.name === context ? closeDialog() : visit(one.name))}
              >
                <span class="row">
                  <strong>{visible(contextName(one))}</strong>
                  {one.readOnly ? <Badge tone="blue">read-only</Badge> : null}
                  {one.name === context ? <Badge tone="accent">here</Badge> : null}
                </span>
                <span class="mono soft clip">{visible(one.servers)}</span>
              </button>
            </li>
          ))}
        </ul>
        {list.value?.why ? <p class="soft">{list.value.why}</p> : null}
        <p class="soft">
          {canWrite() || session.value?.role === 'editor'
            ? 'This console can write: a context that is kept read-only stays so here.'
            : 'This console only looks, wherever it looks.'}
        </p>
      </div>
    </Dialog>
  );
}
