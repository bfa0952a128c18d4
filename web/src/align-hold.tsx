/**
 * A replay held by hand: paused where it is, let on period by period, let go. What it does can be taken
 * back in the audit, so nothing is asked before; the page shows it once the group has heard.
 */
import type { AlignmentView, BodyOf, ChangedView } from '../../src/console/api.ts';
import { time, visible } from './format.ts';
import { useKeys } from './keys.tsx';
import { tell, tellError } from './overlay.tsx';
import { post } from './transport.ts';

type Action = BodyOf<'hold'>['action'];

const told: Readonly<Record<Action, (group: string) => string>> = {
  pause: (group) => `${group} is paused; the audit can undo it.`,
  step: (group) => `${group} goes on by a period; the audit can undo it.`,
  continue: (group) => `${group} goes on; the audit can undo it.`,
};

async function hold(name: string, action: Action): Promise<void> {
  try {
    await post<ChangedView>('/api/alignment/hold', { name, action });
    tell(told[action](visible(name)));
  } catch (failure) {
    tellError(failure);
  }
}

/** What it says of itself; null where nobody holds it. */
export function holdText({ holdMs, isPaused, limitMs }: AlignmentView): string | null {
  if (holdMs === null) return null;
  // The limit may have been further on when the hold came.
  const at = time(Math.max(holdMs, limitMs ?? holdMs));
  return isPaused ? `paused by hand at ${at}` : `goes on up to ${at}, held there by hand`;
}

export function Hold({ view }: { readonly view: AlignmentView }) {
  const act = (action: Action) => () => void hold(view.group, action);
  const isHeld = view.holdMs !== null;
  useKeys({
    ...(!view.isPaused && { p: { about: 'pause the replay', run: act('pause') } }),
    s: { about: 'let the replay on by one period', run: act('step') },
    ...(isHeld && { c: { about: 'let the replay go on', run: act('continue') } }),
  });
  return (
    <>
      {view.isPaused ? null : (
        <button type="button" class="button small" title="key p" onClick={act('pause')}>
          Pause
        </button>
      )}
      <button type="button" class="button small" title="key s" onClick={act('step')}>
        Step
      </button>
      {isHeld ? (
        <button type="button" class="button small main" title="key c" onClick={act('continue')}>
          Continue
        </button>
      ) : null}
    </>
  );
}
