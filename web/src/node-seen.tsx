/**
 * What the data of a node was while this page was open: each version that it showed, to compare with what
 * stands there now or to begin an edit from. Kept in memory until the page is left, within limits; versions
 * that came and went between two looks are not in it. What the logs hold is on the History tab.
 */
import { useEffect, useState } from 'preact/hooks';
import type { NodeView } from '../../src/console/api.ts';
import { asText, fromBase64 } from './decode.ts';
import { Diff } from './edit.tsx';
import { plural, time, visible } from './format.ts';
import { context } from './router.ts';

interface Seen {
  readonly version: number;
  readonly mzxid: string;
  readonly mtimeMs: number;
  readonly data: string | null;
}

const nodesMax = 100;
const versionsMax = 20;
const bytesMax = 8 * 1024 * 1024;
const seen = new Map<string, readonly Seen[]>();

/** Newest first. The node that was looked at longest ago is forgotten first. */
function remember({ path, stat, data }: NodeView): readonly Seen[] {
  const key = `${context ?? ''} ${path}`;
  const before = seen.get(key) ?? [];
  const { version, mzxid, mtimeMs } = stat;
  const isNew = before[0]?.mzxid !== mzxid;
  const next = isNew
    ? [{ version, mzxid, mtimeMs, data }, ...before].slice(0, versionsMax)
    : before;
  seen.delete(key);
  seen.set(key, next);
  const size = () =>
    [...seen.values()].flat().reduce((sum, one) => sum + (one.data?.length ?? 0), 0);
  for (const oldest of [...seen.keys()]) {
    if (seen.size <= nodesMax && size() <= bytesMax) break;
    if (oldest !== key) seen.delete(oldest);
  }
  return next;
}

export function SeenVersions(props: {
  readonly node: NodeView;
  /** Undefined: nothing may be changed here, or it is being edited. */
  readonly onEdit: ((text: string) => void) | undefined;
}) {
  const [list, setList] = useState<readonly Seen[]>([]);
  const [chosen, setChosen] = useState<string | null>(null);
  useEffect(() => setList(remember(props.node)), [props.node]);
  const earlier = list.filter(({ mzxid }) => mzxid !== props.node.stat.mzxid);
  if (earlier.length === 0) return null;
  const shown = earlier.find(({ mzxid }) => mzxid === chosen);
  const text = (data: string | null) => (data === null ? '' : (asText(fromBase64(data)) ?? data));
  return (
    <details class="seen">
      <summary>{plural(earlier.length, 'earlier version')} seen since this page was opened</summary>
      <ul>
        {earlier.map((one) => (
          <li key={one.mzxid} class="row">
            <button
              type="button"
              class="button small"
              aria-pressed={one.mzxid === chosen}
              onClick={() => setChosen(one.mzxid === chosen ? null : one.mzxid)}
            >
              version {one.version}
            </button>
            <span class="soft">
              {time(one.mtimeMs)} · zxid {one.mzxid}
            </span>
            {props.onEdit && asText(fromBase64(one.data ?? '')) !== null ? (
              <button
                type="button"
                class="button small"
                onClick={() => props.onEdit?.(text(one.data))}
              >
                Edit from this
              </button>
            ) : null}
          </li>
        ))}
      </ul>
      {shown ? (
        <Diff
          before={text(shown.data)}
          after={text(props.node.data)}
          label={`Version ${shown.version} and now, of ${visible(props.node.path)}`}
        />
      ) : null}
    </details>
  );
}
