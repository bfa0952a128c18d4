/** A path, as a link to its node in the tree. */
import { visible } from './format.ts';
import { href } from './router.ts';

export function NodeLink(props: { readonly path: string }) {
  return (
    <a class="mono" href={href('tree', { path: props.path })}>
      {visible(props.path)}
    </a>
  );
}
