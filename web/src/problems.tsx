/** Nodes of a layout that could not be understood, each with why. */
import { plural, visible } from './format.ts';
import { NodeLink } from './node-link.tsx';

export function Problems(props: {
  readonly list: readonly { readonly path: string; readonly why: string }[];
}) {
  return (
    <div class="note warn">
      <strong>{plural(props.list.length, 'node')} could not be understood</strong>
      <ul>
        {props.list.slice(0, 20).map(({ path, why }) => (
          <li key={path}>
            <NodeLink path={path} />: {visible(why)}
          </li>
        ))}
      </ul>
    </div>
  );
}
