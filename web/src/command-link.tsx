/**
 * A link that writes a command into the shell, for the reader to finish and to run. Names come from whoever
 * wrote them into the tree: one that could be read as anything but a word (a flag, a quote, a blank) gets no
 * link, so that nobody runs more than they see.
 */
import { canWrite, session } from './live.ts';
import { href } from './router.ts';

const plain = /^[\w.][\w.-]*$/;

export function CommandLink(props: {
  readonly title: string;
  /** Written around the name. */
  readonly before: string;
  readonly name: string;
  readonly after?: string;
}) {
  if (!plain.test(props.name) || !session.value?.features.shell || !canWrite()) return null;
  const line = `${props.before} ${props.name} ${props.after ?? ''}`;
  return (
    <a class="button small" href={href('shell', { line })}>
      {props.title}
    </a>
  );
}
