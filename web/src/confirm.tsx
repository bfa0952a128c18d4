/** The end of a dialog that changes something: a name to type, what went wrong, and its two buttons. */
import { useLayoutEffect, useRef } from 'preact/hooks';
import { visible } from './format.ts';
import { closeDialog } from './overlay.tsx';

/** As it is, or as it is shown: a name with controls in it can't be typed otherwise. */
export const isTyped = (typed: string, wanted: string) =>
  typed === wanted || typed === visible(wanted);

/** What is sent: the server looks at it once more. */
export const asTyped = (typed: string, wanted: string) => (isTyped(typed, wanted) ? wanted : typed);

export function Typed(props: {
  readonly word: string;
  readonly to: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  /** It came late: who opened the dialog by a key types on without a mouse. */
  readonly takesFocus?: boolean;
}) {
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    if (props.takesFocus) field.current?.focus();
  }, []);
  return (
    <label>
      <span>
        Type <code>{visible(props.word)}</code> to {props.to}
      </span>
      <input
        ref={field}
        class="field mono"
        value={props.value}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => props.onInput(event.currentTarget.value)}
      />
    </label>
  );
}

export function Failure(props: { readonly text: string | null }) {
  return props.text === null ? null : (
    <p class="note bad" role="alert">
      {props.text}
    </p>
  );
}

export function Buttons(props: {
  readonly action: string;
  readonly isReady: boolean;
  readonly isDanger?: boolean;
}) {
  return (
    <>
      <button type="button" class="button" onClick={closeDialog}>
        Cancel
      </button>
      <button
        type="submit"
        class={`button ${props.isDanger ? 'danger' : 'main'}`}
        disabled={!props.isReady}
      >
        {props.action}
      </button>
    </>
  );
}
