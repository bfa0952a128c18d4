/** Pages of a long list, with the offset in the URL. */
import { count } from './format.ts';
import { param, turn } from './router.ts';

export const pageSize = 100;

export function offsetParam(): number {
  const value = Number(param('offset') ?? 0);
  return Number.isSafeInteger(value) && value > 0 ? value : 0;
}

export function Pager(props: {
  readonly matching: number;
  readonly total: number;
  readonly word: string;
}) {
  const offset = offsetParam();
  const end = Math.min(offset + pageSize, props.matching);
  const to = (value: number) => turn({ offset: value > 0 ? String(value) : '' });
  return (
    <div class="row">
      <span class="soft">
        {props.matching === 0
          ? 'none'
          : `${count(offset + 1)}–${count(end)} of ${count(props.matching)}`}{' '}
        {props.word}
        {props.matching === props.total ? '' : `, ${count(props.total)} in all`}
      </span>
      {props.matching > pageSize ? (
        <>
          <button
            type="button"
            class="button small"
            disabled={offset === 0}
            onClick={() => to(Math.max(0, offset - pageSize))}
          >
            Before
          </button>
          <button
            type="button"
            class="button small"
            disabled={end >= props.matching}
            onClick={() => to(offset + pageSize)}
          >
            Next
          </button>
        </>
      ) : null}
    </div>
  );
}
