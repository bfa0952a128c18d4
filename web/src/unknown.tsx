/** What the servers can't or won't tell, said in a note under the page that would show it. */

export function Unknown(props: { readonly list: readonly string[] }) {
  if (props.list.length === 0) return null;
  return (
    <div class="note">
      <strong>Not known here</strong>
      <ul>
        {props.list.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
    </div>
  );
}
