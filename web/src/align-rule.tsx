/**
 * How an aligned group's limit moves from now on: by periods, by a drift, or not at all. It holds for all
 * members from the next step of the limit; the audit can take it back.
 */
import { useState } from 'preact/hooks';
import type { AlignRule, BodyOf, ChangedView } from '../../src/console/api.ts';
import { Failure } from './confirm.tsx';
import { duration, visible } from './format.ts';
import { closeDialog, Dialog, openDialog, tell } from './overlay.tsx';
import { post } from './transport.ts';

export const askRule = (group: string, rule: AlignRule) =>
  openDialog(() => <Rule group={group} rule={rule} />);

const modes: Readonly<Record<AlignRule['mode'], string>> = {
  period: 'by periods: nobody begins one before all have ended the one before',
  drift: 'by drift: nobody is further ahead of the slowest',
  off: 'not at all: nobody waits for anybody',
};

const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `5m`, `90s`, `1500ms`; null: it is none. */
export function durationMsOf(text: string): number | null {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*$/.exec(text);
  if (match === null) return null;
  const value = Math.round(Number(match[1]) * units[match[2] as keyof typeof units]);
  return value >= 1 && Number.isSafeInteger(value) ? value : null;
}

/** As it would be typed. */
export function durationText(ms: number): string {
  const unit = (['d', 'h', 'm', 's'] as const).find((one) => ms % units[one] === 0) ?? 'ms';
  return `${ms / units[unit]}${unit}`;
}

function Rule(props: { readonly group: string; readonly rule: AlignRule }) {
  const { rule } = props;
  const [mode, setMode] = useState(rule.mode);
  const [step, setStep] = useState(durationText(rule.stepMs));
  const [drift, setDrift] = useState(durationText(rule.driftMs ?? rule.stepMs));
  const [ahead, setAhead] = useState(String(rule.lookAhead ?? 0));
  const [error, setError] = useState<string | null>(null);
  const stepMs = durationMsOf(step);
  const driftMs = durationMsOf(drift);
  const lookAhead = /^\d{1,3}$/.test(ahead) ? Number(ahead) : null;
  const isReady =
    stepMs !== null &&
    (mode !== 'drift' || driftMs !== null) &&
    (mode !== 'period' || lookAhead !== null);
  const change = async () => {
    const body: BodyOf<'rule'> = {
      name: props.group,
      rule: {
        mode,
        stepMs: stepMs!,
        lookAhead: mode === 'period' ? lookAhead : null,
        driftMs: mode === 'drift' ? driftMs : null,
      },
    };
    try {
      await post<ChangedView>('/api/alignment/rule', body);
      closeDialog();
      tell(`The rule of ${props.group} was changed; the audit can undo it.`);
    } catch (failure) {
      setError((failure as Error).message);
    }
  };
  return (
    <Dialog
      title={`How ${visible(props.group)} is held in step`}
      onSubmit={() => void change()}
      footer={
        <>
          <button type="button" class="button" onClick={closeDialog}>
            Cancel
          </button>
          <button type="submit" class="button main" disabled={!isReady}>
            Change the rule
          </button>
        </>
      }
    >
      <div class="body">
        <label>
          The limit moves
          <select
            class="field"
            value={mode}
            onChange={(event) => setMode(event.currentTarget.value as typeof mode)}
          >
            {Object.entries(modes).map(([name, words]) => (
              <option key={name} value={name}>
                {words}
              </option>
            ))}
          </select>
        </label>
        {mode === 'off' ? null : (
          <label>
            {mode === 'period' ? 'Period, as 5m or 30s' : 'Step of the limit, as 1s'}
            <input
              class="field mono"
              value={step}
              autocomplete="off"
              onInput={(event) => setStep(event.currentTarget.value)}
            />
          </label>
        )}
        {mode === 'period' ? (
          <label>
            Periods that the fast may be ahead
            <input
              class="field mono"
              value={ahead}
              autocomplete="off"
              onInput={(event) => setAhead(event.currentTarget.value)}
            />
          </label>
        ) : null}
        {mode === 'drift' ? (
          <label>
            How far ahead of the slowest, as 1m
            <input
              class="field mono"
              value={drift}
              autocomplete="off"
              onInput={(event) => setDrift(event.currentTarget.value)}
            />
          </label>
        ) : null}
        {stepMs === null && mode !== 'off' ? (
          <p class="soft">A number and ms, s, m, h or d are wanted.</p>
        ) : null}
        <p class="soft">
          Now: {modes[rule.mode]}
          {rule.mode === 'off' ? '' : `, ${duration(rule.stepMs)}`}.
        </p>
        <Failure text={error} />
      </div>
    </Dialog>
  );
}
