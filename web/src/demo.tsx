/** What an empty tree offers: a demo that brings every page to life, or the way to get it elsewhere. */
import { useState } from 'preact/hooks';
import { canWrite, session } from './live.ts';
import { tell } from './overlay.tsx';
import { post } from './transport.ts';
import { Empty } from './ui.tsx';

export function DemoOffer() {
  const [state, setState] = useState<'offered' | 'starting' | 'started' | string>('offered');
  const start = async () => {
    setState('starting');
    try {
      await post('/api/demo', {});
      setState('started');
      tell('The demo runs: brokers, groups, locks and a replay come to life.');
    } catch (error) {
      setState((error as Error).message);
    }
  };
  return (
    <Empty title="Nothing is stored here yet">
      {session.value?.features.demo && canWrite() ? (
        <>
          <p>
            The demo fills the tree with brokers, two groups, locks and a replay, so that every page
            has something to show.
          </p>
          <button
            type="button"
            class="button main"
            disabled={state === 'starting' || state === 'started'}
            onClick={() => void start()}
          >
            {state === 'starting' ? 'Starting…' : state === 'started' ? 'Started' : 'Load the demo'}
          </button>
          {['offered', 'starting', 'started'].includes(state) ? null : (
            <p class="note bad">{state}</p>
          )}
        </>
      ) : (
        <p>
          Create a node with <code>drover create /first hello</code>
          {session.value?.features.demo
            ? ', or start the console with --write to load a demo from here.'
            : '.'}
        </p>
      )}
    </Empty>
  );
}
