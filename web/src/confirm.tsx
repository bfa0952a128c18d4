/** The end of a dialog that changes something: a name to type, and what went wrong. */

export function Typed(props: {
  readonly word: string;
  readonly to: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
}) {
  return (
    <label>
      <span>
        Type <code>{props.word}</code> to {props.to}
      </span>
      <input
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
