/**
 * What is asked before the tree changes: create, delete, import. A delete shows how many nodes go, names
 * some of them and wants a name typed; nothing is deleted if there are more by then.
 */
import { useState } from 'preact/hooks';
import type {
  BodyOf,
  ChangedView,
  DeletePreview,
  ExportView,
  ImportView,
} from '../../src/console/api.ts';
import { Buttons, Failure } from './confirm.tsx';
import { toBase64 } from './decode.ts';
import { count, joinPath, parentOf, plural, visible } from './format.ts';
import { closeDialog, Dialog, openDialog, tell, tellError } from './overlay.tsx';
import { go, href } from './router.ts';
import { SubtreeDialog } from './subtree-dialog.tsx';
import { at, get, post } from './transport.ts';

export const askCreate = (parent: string) => openDialog(() => <Create parent={parent} />);
export const askDelete = (paths: readonly string[], onDone: () => void) =>
  openDialog(() => <Delete paths={paths} onDone={onDone} />);
export const askImport = (path: string) => openDialog(() => <Import path={path} />);

const modes = ['persistent', 'persistentSequential', 'container', 'persistentTtl'] as const;

function Create(props: { readonly parent: string }) {
  const [name, setName] = useState('');
  const [text, setText] = useState('');
  const [mode, setMode] = useState<(typeof modes)[number]>('persistent');
  const [ttlS, setTtlS] = useState('60');
  const [error, setError] = useState<string | null>(null);
  const create = async () => {
    const body: BodyOf<'create'> = {
      path: joinPath(props.parent, name),
      data: toBase64(new TextEncoder().encode(text)),
      mode,
      parents: true,
      ...(mode === 'persistentTtl' ? { ttlMs: Math.round(Number(ttlS) * 1000) } : {}),
    };
    try {
      const { path } = await post<ChangedView>('/api/node/create', body);
      closeDialog();
      tell(`Created ${visible(path)}.`);
      go(href('tree', { path }));
    } catch (failure) {
      setError((failure as Error).message);
    }
  };
  return (
    <Dialog
      title={`New node below ${visible(props.parent)}`}
      onSubmit={() => void create()}
      footer={<Buttons action="Create" isReady={name !== '' || mode === 'persistentSequential'} />}
    >
      <div class="body">
        <label>
          Name (a/b makes both)
          <input
            class="field mono"
            value={name}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
        <label>
          Kind
          <select
            class="field"
            value={mode}
            onChange={(event) => setMode(event.currentTarget.value as typeof mode)}
          >
            {modes.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </label>
        {mode === 'persistentTtl' ? (
          <label>
            Seconds to live, once it has no children
            <input
              class="field"
              type="number"
              min="1"
              value={ttlS}
              onInput={(event) => setTtlS(event.currentTarget.value)}
            />
          </label>
        ) : null}
        <label>
          Data, as text
          <textarea
            class="field mono"
            rows={6}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <Failure text={error} />
      </div>
    </Dialog>
  );
}

function Delete(props: { readonly paths: readonly string[]; readonly onDone: () => void }) {
  const { paths } = props;
  const remove = async ({ confirm, count }: DeletePreview) => {
    const body: BodyOf<'delete'> = { paths: [...paths], confirm, count };
    const done = await post<ChangedView & { count: number }>('/api/node/delete', body);
    tell(`Deleted ${plural(done.count, 'node')}.`);
    props.onDone();
  };
  return (
    <SubtreeDialog
      title={
        paths.length === 1
          ? `Delete ${visible(paths[0]!)}`
          : `Delete ${paths.length} nodes and all below`
      }
      look={() => post<DeletePreview>('/api/node/delete-preview', { paths })}
      action={(preview) => (preview ? `Delete ${plural(preview.count, 'node')}` : 'Delete')}
      to="delete"
      tooMany="That is more than one delete takes. Delete parts of it, or use the command line."
      run={remove}
    >
      {(preview) => (
        <>
          <strong>{plural(preview.count, 'node')}</strong> would go
          {preview.ephemerals > 0
            ? `, ${plural(preview.ephemerals, 'of them is', 'of them are')} ephemeral: somebody lives there`
            : ''}
          .
        </>
      )}
    </SubtreeDialog>
  );
}

/** Hands nodes, each with all below it, to the reader as one file; `Import` reads it. */
export async function exportNodes(paths: readonly string[]): Promise<void> {
  try {
    const root = paths.length === 1 ? paths[0]! : commonParent(paths);
    const views: ExportView[] = [];
    for (const path of paths) views.push(await get<ExportView>(at('/api/export', { path })));
    const view: ExportView = {
      path: root,
      nodes: views.flatMap(({ path, nodes }) =>
        nodes.map((node) => ({
          ...node,
          path: `${path.slice(root === '/' ? 0 : root.length)}${node.path}`,
        })),
      ),
      isCut: views.some(({ isCut }) => isCut),
      skippedEphemerals: views.reduce((sum, one) => sum + one.skippedEphemerals, 0),
    };
    if (view.isCut) tell('Only the first 10,000 nodes are in the file.');
    const url = URL.createObjectURL(
      new Blob([JSON.stringify(view, null, 2)], { type: 'application/json' }),
    );
    const anchor = document.createElement('a');
    anchor.href = url;
    anchor.download = `${root === '/' ? 'root' : root.slice(1).replaceAll(/[^\w.-]+/g, '-')}.json`;
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
    tell(`Exported ${plural(view.nodes.length, 'node')}.`);
  } catch (error) {
    tellError(error);
  }
}

/** The nearest node that all of them stand below. */
function commonParent(paths: readonly string[]): string {
  let parent = parentOf(paths[0]!);
  while (parent !== '/' && !paths.every((path) => path.startsWith(`${parent}/`))) {
    parent = parentOf(parent);
  }
  return parent;
}

const conflicts = ['fail', 'skip', 'overwrite'] as const;

function Import(props: { readonly path: string }) {
  const [nodes, setNodes] = useState<BodyOf<'import'>['nodes'] | null>(null);
  const [onConflict, setOnConflict] = useState<(typeof conflicts)[number]>('fail');
  const [dry, setDry] = useState<ImportView | null>(null);
  const [error, setError] = useState<string | null>(null);
  const run = async (dryRun: boolean) => {
    setError(null);
    try {
      const view = await post<ImportView>('/api/import', {
        path: props.path,
        nodes,
        onConflict,
        dryRun,
      });
      if (dryRun) setDry(view);
      else {
        closeDialog();
        tell(`Imported: ${count(view.created)} created, ${count(view.overwritten)} overwritten.`);
      }
    } catch (failure) {
      setError((failure as Error).message);
    }
  };
  const choose = async (file: File | undefined) => {
    setDry(null);
    setError(null);
    try {
      const view = JSON.parse((await file?.text()) ?? '') as Partial<ExportView>;
      if (!Array.isArray(view.nodes)) throw new Error('it has no list "nodes"');
      setNodes(
        view.nodes.map((node) => ({ ...node, ...(node.acl ? { acl: [...node.acl] } : {}) })),
      );
    } catch (failure) {
      setNodes(null);
      setError(`This is no export of a tree: ${(failure as Error).message}`);
    }
  };
  const isSafe = dry !== null && (dry.conflicts.length === 0 || onConflict !== 'fail');
  return (
    <Dialog
      title={`Import below ${visible(props.path)}`}
      onSubmit={() => void run(!isSafe)}
      footer={
        <Buttons
          action={
            isSafe
              ? `Write ${plural((dry?.created ?? 0) + (dry?.overwritten ?? 0), 'node')}`
              : 'Try without writing'
          }
          isReady={nodes !== null}
        />
      }
    >
      <div class="body">
        <label>
          A file that Export wrote, of this or of another cluster
          <input
            class="field"
            type="file"
            accept="application/json,.json"
            onChange={(event) => void choose(event.currentTarget.files?.[0])}
          />
        </label>
        <label>
          Where a node is there already
          <select
            class="field"
            value={onConflict}
            onChange={(event) => {
              setOnConflict(event.currentTarget.value as typeof onConflict);
              setDry(null);
            }}
          >
            {conflicts.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        {dry ? (
          <>
            <p>
              Would create {count(dry.created)}, overwrite {count(dry.overwritten)}, skip{' '}
              {count(dry.skipped)}; {count(dry.same)} are the same.
            </p>
            {dry.conflicts.length > 0 ? (
              <pre class="data">{dry.conflicts.slice(0, 50).map(visible).join('\n')}</pre>
            ) : null}
          </>
        ) : null}
        <Failure text={error} />
      </div>
    </Dialog>
  );
}
