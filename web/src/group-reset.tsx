/**
 * Where a group's offsets stand, set by hand: to an end, to a number, to a time, so many on or back, or
 * none at all. Shown partition by partition first; done once the group's name is typed.
 */
import { useState } from 'preact/hooks';
import type { BodyOf, GroupView, ResetView } from '../../src/console/api.ts';
import { asTyped, Buttons, Failure, isTyped, Typed } from './confirm.tsx';
import { count, plural, visible } from './format.ts';
import { closeDialog, Dialog, openDialog, tell } from './overlay.tsx';
import { post } from './transport.ts';
import { Badge, type Tone } from './ui.tsx';

export const askReset = (group: GroupView) => openDialog(() => <Reset group={group} />);

const ways = {
  earliest: 'to the earliest record',
  latest: 'to the end',
  offset: 'to an offset',
  time: 'to a time',
  shift: 'by so many records',
  delete: 'delete what was committed',
} as const;
type Way = keyof typeof ways;

type Outcome = ResetView['resets'][number]['outcome'];
const outcomes: Readonly<Record<Outcome, readonly [word: string, tone: Tone]>> = {
  wouldSet: ['would be set', 'accent'],
  wouldDelete: ['would be deleted', 'warn'],
  set: ['set', 'good'],
  deleted: ['deleted', 'good'],
  unchanged: ['as it is', ''],
  owned: ['a member reads it', 'bad'],
};

const shownMax = 200;

function Reset({ group }: { readonly group: GroupView }) {
  const topics = [...new Set(group.partitions.map(({ topic }) => topic))];
  const [topic, setTopic] = useState('');
  const [way, setWay] = useState<Way>(group.lagUnknown === null ? 'latest' : 'offset');
  const [value, setValue] = useState('');
  const [view, setView] = useState<ResetView | null>(null);
  const [typed, setTyped] = useState('');
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const changed = () => {
    setView(null);
    setTyped('');
    setError(null);
  };
  const timeMs = way === 'time' ? Date.parse(value.trim()) : 0;
  const isGood =
    way === 'offset'
      ? /^\d{1,19}$/.test(value)
      : way === 'shift'
        ? /^-?\d{1,19}$/.test(value)
        : Number.isFinite(timeMs);
  const work = (view?.resets ?? []).filter(({ outcome }) =>
    ['wouldSet', 'wouldDelete'].includes(outcome),
  ).length;
  const run = async () => {
    const input: BodyOf<'reset'> = {
      name: group.group,
      ...(topic === '' ? {} : { topic }),
      ...ruleOf(way, value, timeMs),
      dryRun: view === null,
      ...(view === null ? {} : { confirm: asTyped(typed, group.group) }),
    };
    setBusy(true);
    setError(null);
    try {
      const answer = await post<ResetView>('/api/groups/reset', input);
      if (!answer.done) return setView(answer);
      const done = answer.resets.filter(
        ({ outcome }) => outcome === 'set' || outcome === 'deleted',
      );
      closeDialog();
      tell(`${plural(done.length, 'offset')} of ${group.group} changed; the audit can undo it.`);
    } catch (failure) {
      setError((failure as Error).message);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={`Offsets of ${visible(group.group)}`}
      class="wide"
      onSubmit={() => void run()}
      footer={
        <Buttons
          action={view === null ? 'Look first, change nothing' : `Change ${plural(work, 'offset')}`}
          isReady={!isBusy && (view === null ? isGood : work > 0 && isTyped(typed, group.group))}
          isDanger={view !== null}
        />
      }
    >
      <div class="body">
        {group.members.length > 0 ? (
          <p class="note warn">
            {plural(group.members.length, 'member')} of this group{' '}
            {group.members.length === 1 ? 'is' : 'are'} running: what a member reads is left alone.
            Stop the group first.
          </p>
        ) : null}
        <label>
          Topic
          <select
            class="field"
            value={topic}
            onChange={(event) => {
              setTopic(event.currentTarget.value);
              changed();
            }}
          >
            <option value="">all it has read</option>
            {topics.map((one) => (
              <option key={one} value={one}>
                {visible(one)}
              </option>
            ))}
          </select>
        </label>
        <label>
          Where to
          <select
            class="field"
            value={way}
            onChange={(event) => {
              setWay(event.currentTarget.value as Way);
              setValue('');
              changed();
            }}
          >
            {Object.entries(ways).map(([name, words]) => (
              <option
                key={name}
                value={name}
                disabled={
                  group.lagUnknown !== null && ['earliest', 'latest', 'time'].includes(name)
                }
              >
                {words}
              </option>
            ))}
          </select>
        </label>
        {group.lagUnknown === null ? null : (
          <p class="soft">Ends and times can't be chosen: {group.lagUnknown}.</p>
        )}
        {way === 'offset' || way === 'shift' || way === 'time' ? (
          <label>
            {way === 'offset'
              ? 'Offset'
              : way === 'shift'
                ? 'Records on; with a minus, back'
                : 'The first record that is not older than'}
            <input
              class="field mono"
              autocomplete="off"
              spellcheck={false}
              placeholder={way === 'time' ? '2026-01-31T12:00:00Z' : way === 'shift' ? '-100' : '0'}
              value={value}
              onInput={(event) => {
                setValue(event.currentTarget.value);
                changed();
              }}
            />
          </label>
        ) : null}
        {view === null ? null : <Preview view={view} />}
        {view !== null && work > 0 ? (
          <Typed
            word={group.group}
            to={`change ${plural(work, 'offset')}`}
            value={typed}
            onInput={setTyped}
          />
        ) : null}
        <Failure text={error} />
      </div>
    </Dialog>
  );
}

function ruleOf(way: Way, value: string, toTimeMs: number): Partial<BodyOf<'reset'>> {
  if (way === 'earliest' || way === 'latest') return { to: way };
  if (way === 'offset') return { to: value };
  if (way === 'shift') return { shiftBy: value };
  return way === 'time' ? { toTimeMs } : { delete: true };
}

function Preview({ view }: { readonly view: ResetView }) {
  const number = (text: string | null) => (text === null ? '–' : count(BigInt(text)));
  return (
    <div class="scroll plan">
      <table>
        <thead>
          <tr>
            <th scope="col">topic</th>
            <th scope="col" class="num">
              partition
            </th>
            <th scope="col" class="num">
              from
            </th>
            <th scope="col" class="num">
              to
            </th>
            <th scope="col">
              <span class="sr">what happens</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {view.resets.slice(0, shownMax).map((row) => (
            <tr key={`${row.topic}/${row.partition}`}>
              <td>{visible(row.topic)}</td>
              <td class="num">{visible(row.partition)}</td>
              <td class="num">{number(row.before)}</td>
              <td class="num">{number(row.after)}</td>
              <td>
                <Badge tone={outcomes[row.outcome][1]}>{outcomes[row.outcome][0]}</Badge>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {view.resets.length > shownMax ? (
        <p class="note">{count(view.resets.length - shownMax)} more are not shown.</p>
      ) : null}
    </div>
  );
}
