/** Locks, elections, queues and the rest, found by their layouts: who holds, who waits, how long, who is stuck. */
import type {
  ContenderView,
  RecipeKind,
  RecipesView,
  RecipeView,
} from '../../../src/console/api.ts';
import { count, duration, plural, visible } from '../format.ts';
import { useAnswer } from '../live.ts';
import { NodeLink } from '../node-link.tsx';
import { href, param, turn } from '../router.ts';
import { LastTerms, Terms } from '../terms.tsx';
import { at } from '../transport.ts';
import { Badge, Empty, Filter, Head, matches, Panel } from '../ui.tsx';

const names: Readonly<Record<RecipeKind, string>> = {
  lock: 'lock',
  readWriteLock: 'read/write lock',
  semaphore: 'semaphore',
  election: 'election',
  queue: 'queue',
  barrier: 'barrier',
  doubleBarrier: 'double barrier',
  discovery: 'service discovery',
  membership: 'membership',
};
const sizes: Partial<Readonly<Record<RecipeKind, readonly [one: string, many: string]>>> = {
  semaphore: ['lease taken', 'leases taken'],
  membership: ['member', 'members'],
  queue: ['item', 'items'],
  discovery: ['instance', 'instances'],
  doubleBarrier: ['member', 'members'],
};
const seatsShown = 12;

export function View() {
  const recipes = useAnswer<RecipesView>(at('/api/recipes', { path: param('path') }), ['recipes']);
  const view = recipes.value;
  const kind = param('kind');
  const shown = (view?.recipes ?? []).filter(
    (recipe) =>
      (!kind || recipe.kind === kind) && matches(param('q'), recipe.path, names[recipe.kind]),
  );
  const kinds = [...new Set((view?.recipes ?? []).map((recipe) => recipe.kind))];
  return (
    <div class="stack">
      <Head
        title="Recipes"
        about={
          view
            ? `${plural(view.recipes.length, 'recipe')} among ${count(view.looked)} nodes${view.isPartial ? '; not all nodes were looked at' : ''}`
            : ''
        }
      >
        <select
          class="field"
          aria-label="Kind"
          value={kind ?? ''}
          onChange={(event) => turn({ kind: event.currentTarget.value }, 'replace')}
        >
          <option value="">all kinds</option>
          {kinds.map((one) => (
            <option key={one} value={one}>
              {names[one]}
            </option>
          ))}
        </select>
        <Filter label="Filter by path" />
      </Head>
      {recipes.error ? <p class="note bad">{recipes.error.message}</p> : null}
      {view?.deadlocks.map((circle) => (
        <div class="note bad" role="alert" key={circle.map(({ session }) => session).join()}>
          <strong>Deadlock.</strong> These sessions wait for each other:
          <ul>
            {circle.map((step) => (
              <li key={step.session}>
                <code>{step.session}</code> holds <NodeLink path={step.holds} /> and waits for{' '}
                <NodeLink path={step.waitsFor} />
              </li>
            ))}
          </ul>
        </div>
      ))}
      {view && shown.length === 0 ? (
        <div class="panel">
          <Empty
            title={view.recipes.length === 0 ? 'No recipe was found' : 'Nothing matches the filter'}
          >
            <p>
              Locks, elections, semaphores, queues, barriers and discovery appear here when somebody
              uses them.
            </p>
          </Empty>
        </div>
      ) : null}
      {param('terms') === null ? null : <Terms election={param('terms')!} />}
      <div class="grid wide">
        {shown.map((recipe) => (
          <Recipe key={`${recipe.kind} ${recipe.path}`} recipe={recipe} />
        ))}
      </div>
    </div>
  );
}

function Recipe({ recipe }: { readonly recipe: RecipeView }) {
  const rest = recipe.holding + recipe.waiting - Math.min(recipe.contenders.length, seatsShown);
  return (
    <Panel
      title={<NodeLink path={recipe.path} />}
      aside={<Badge tone="accent">{names[recipe.kind]}</Badge>}
    >
      <div class="stack">
        <div class="row wrap soft">
          {recipe.size === null ? null : (
            <span>
              {plural(recipe.size, ...(sizes[recipe.kind] ?? (['in all', 'in all'] as const)))}
            </span>
          )}
          {recipe.holding > 0 && recipe.kind !== 'membership' ? (
            <span>{plural(recipe.holding, 'holds', 'hold')}</span>
          ) : null}
          {recipe.waiting > 0 ? <span>{plural(recipe.waiting, 'waits', 'wait')}</span> : null}
          {recipe.oldestWaitMs === null ? null : (
            <span class={recipe.oldestWaitMs > 60_000 ? 'warn' : ''}>
              longest wait {duration(recipe.oldestWaitMs)}
            </span>
          )}
        </div>
        {recipe.contenders.length === 0 ? null : (
          <div class="queue">
            {recipe.contenders.slice(0, seatsShown).map((contender, index) => (
              <>
                {index > 0 && contender.state === 'waits' ? (
                  <span class="soft" aria-hidden="true">
                    ←
                  </span>
                ) : null}
                <Seat key={contender.path} contender={contender} />
              </>
            ))}
            {rest > 0 ? <span class="soft">+{count(rest)}</span> : null}
          </div>
        )}
        {recipe.terms ? <LastTerms election={recipe.path} terms={recipe.terms} /> : null}
        {recipe.note === null ? null : <p class="soft">{recipe.note}</p>}
      </div>
    </Panel>
  );
}

/** What its owner wrote, unless that is for machines. */
const whoIs = ({ label, name, session }: ContenderView) =>
  label !== '' && !/^[[{]/.test(label) ? label : name || session || '';

function Seat({ contender }: { readonly contender: ContenderView }) {
  const isHolder = contender.state === 'holds';
  return (
    <a
      class={`seat clip ${isHolder ? 'holder' : ''}`}
      href={href('tree', { path: contender.path })}
      title={`${visible(contender.name)} · session ${contender.session ?? 'none'} · fencing token ${contender.fencingToken}`}
    >
      <strong>{isHolder ? 'holds' : contender.state === 'waits' ? 'waits' : ''}</strong>{' '}
      {contender.side ?? ''} {visible(whoIs(contender))}{' '}
      <span class="soft">{duration(contender.ageMs)}</span>
    </a>
  );
}
