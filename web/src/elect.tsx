/** Has the preferred replicas of a topic elected: shown first, asked of the controller once its name is typed. */
import { useEffect, useState } from 'preact/hooks';
import type { ElectView } from '../../src/console/api.ts';
import { asTyped, Buttons, Failure, isTyped, Typed } from './confirm.tsx';
import { plural, visible } from './format.ts';
import { closeDialog, Dialog, openDialog, tell } from './overlay.tsx';
import { post } from './transport.ts';
import { Badge } from './ui.tsx';

export const askElect = (topic: string) => openDialog(() => <Elect topic={topic} />);

function Elect(props: { readonly topic: string }) {
  const [view, setView] = useState<ElectView | null>(null);
  const [typed, setTyped] = useState('');
  const [error, setError] = useState<string | null>(null);
  const run = async (dryRun: boolean) => {
    try {
      const body = {
        topic: props.topic,
        dryRun,
        ...(dryRun ? {} : { confirm: asTyped(typed, props.topic) }),
      };
      const answer = await post<ElectView>('/api/kafka/elect', body);
      if (!answer.done) return setView(answer);
      closeDialog();
      tell('The controller was asked; leaders change as it answers.');
    } catch (failure) {
      setError((failure as Error).message);
    }
  };
  useEffect(() => void run(true), []);
  const able = (view?.candidates ?? []).filter(({ whyNot }) => whyNot === null);
  return (
    <Dialog
      title={`Elect leaders of ${visible(props.topic)}`}
      onSubmit={() => void run(false)}
      footer={
        <Buttons
          action={`Elect ${plural(able.length, 'leader')}`}
          isReady={able.length > 0 && isTyped(typed, props.topic)}
          isDanger
        />
      }
    >
      <div class="body">
        {view === null ? null : view.candidates.length === 0 ? (
          <p>Every partition is led by its preferred replica.</p>
        ) : (
          <ul class="lines">
            {view.candidates.slice(0, 100).map((one) => (
              <li key={one.partition}>
                <strong class="mono">{one.partition}</strong>
                <span>
                  {one.leader === null ? 'led by nobody' : `led by ${one.leader}`}, preferred is{' '}
                  {one.preferred}
                </span>
                {one.whyNot === null ? (
                  <Badge tone="accent">can be elected</Badge>
                ) : (
                  <Badge tone="warn">{one.whyNot}</Badge>
                )}
              </li>
            ))}
          </ul>
        )}
        {able.length > 0 ? (
          <>
            <p class="soft">
              Clients of these partitions look for their new leader. There is no way back to who
              leads now.
            </p>
            <Typed
              word={props.topic}
              to={`elect ${plural(able.length, 'leader')}`}
              value={typed}
              onInput={setTyped}
            />
          </>
        ) : null}
        <Failure text={error} />
      </div>
    </Dialog>
  );
}
