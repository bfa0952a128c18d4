/**
 * Who may do what with a node, and the editor for it. The hash of a digest is never shown: the server
 * leaves it out, and keeps the one that stands there where an entry comes back unchanged.
 */
import { useState } from 'preact/hooks';
import type {
  AclEntry,
  BodyOf,
  ChangedView,
  DeletePreview,
  NodeView,
} from '../../src/console/api.ts';
import { plural, visible } from './format.ts';
import { canWrite } from './live.ts';
import { openDialog, tell, tellError } from './overlay.tsx';
import { SubtreeDialog } from './subtree-dialog.tsx';
import { at, get, post } from './transport.ts';
import { Empty } from './ui.tsx';

const rights = [
  ['r', 'read'],
  ['w', 'write'],
  ['c', 'create children'],
  ['d', 'delete children'],
  ['a', 'admin'],
] as const;

/** One node's: whoever shows another makes it anew, by its key, so that no draft goes with it. */
export function NodeAcl(props: { readonly node: NodeView; readonly reload: () => void }) {
  const { node } = props;
  const [draft, setDraft] = useState<readonly AclEntry[] | null>(null);
  const [isRecursive, setRecursive] = useState(false);
  if (node.acl === null) return <Empty title="The ACL may not be read by this session" />;
  const entries = draft ?? node.acl;
  const put = (index: number, entry: AclEntry | null) =>
    setDraft(entries.flatMap((old, at) => (at === index ? (entry ? [entry] : []) : [old])));
  const body: BodyOf<'acl'> = {
    path: node.path,
    acl: entries.map((entry) => ({ ...entry })),
    version: node.stat.aversion,
    recursive: isRecursive,
  };
  const done = () => {
    tell(`The ACL of ${visible(node.path)} is set.`);
    setDraft(null);
    props.reload();
  };
  const save = () => {
    if (isRecursive) openDialog(() => <Below body={body} onDone={done} />);
    else post<ChangedView>('/api/node/acl', body).then(done, tellError);
  };
  const isEditable = canWrite();
  return (
    <>
      <div class="panel scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">scheme</th>
              <th scope="col">id</th>
              {rights.map(([letter, name]) => (
                <th key={letter} scope="col">
                  {name}
                </th>
              ))}
              {isEditable ? (
                <th scope="col">
                  <span class="sr">remove</span>
                </th>
              ) : null}
            </tr>
          </thead>
          <tbody>
            {entries.map((entry, index) => (
              <tr key={index}>
                <td>
                  <Text
                    label={`Scheme ${index + 1}`}
                    value={entry.scheme}
                    isEditable={isEditable}
                    onInput={(scheme) => put(index, { ...entry, scheme })}
                  />
                </td>
                <td>
                  <Text
                    label={`Id ${index + 1}`}
                    value={entry.id}
                    isEditable={isEditable}
                    onInput={(id) => put(index, { ...entry, id })}
                  />
                </td>
                {rights.map(([letter, name]) => (
                  <td key={letter}>
                    <input
                      type="checkbox"
                      aria-label={`${name}, entry ${index + 1}`}
                      checked={entry.perms.includes(letter)}
                      disabled={!isEditable}
                      onChange={(event) => {
                        const perms = rights
                          .map(([one]) => one)
                          .filter((one) =>
                            one === letter
                              ? event.currentTarget.checked
                              : entry.perms.includes(one),
                          );
                        put(index, { ...entry, perms: perms.join('') });
                      }}
                    />
                  </td>
                ))}
                {isEditable ? (
                  <td>
                    <button
                      type="button"
                      class="button small plain"
                      aria-label={`Remove entry ${index + 1}`}
                      disabled={entries.length === 1}
                      onClick={() => put(index, null)}
                    >
                      ✕
                    </button>
                  </td>
                ) : null}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {isEditable ? (
        <div class="row wrap">
          <button
            type="button"
            class="button"
            onClick={() => setDraft([...entries, { scheme: 'auth', id: '', perms: 'cdrwa' }])}
          >
            Add
          </button>
          <label class="row">
            <input
              type="checkbox"
              checked={isRecursive}
              onChange={(event) => setRecursive(event.currentTarget.checked)}
            />
            and everything below ({node.stat.numChildren} children)
          </label>
          <span class="grow" />
          <button type="button" class="button" disabled={!draft} onClick={() => setDraft(null)}>
            Discard
          </button>
          <button
            type="button"
            class="button main"
            disabled={!(draft || isRecursive) || entries.some(({ perms }) => perms === '')}
            onClick={save}
          >
            Set ACL
          </button>
        </div>
      ) : null}
    </>
  );
}

function Below(props: { readonly body: BodyOf<'acl'>; readonly onDone: () => void }) {
  const { body } = props;
  const set = async ({ confirm, count }: DeletePreview) => {
    await post<ChangedView>('/api/node/acl', { ...body, confirm, count });
    props.onDone();
  };
  return (
    <SubtreeDialog
      title={`Set the ACL of ${visible(body.path)} and everything below`}
      look={() => get<DeletePreview>(at('/api/node/below', { path: body.path }))}
      action={(preview) => (preview ? `Set ${plural(preview.count, 'ACL')}` : 'Set')}
      to="set them"
      tooMany="That is more than one change takes. Use the command line."
      run={set}
    >
      {(preview) => (
        <>
          <strong>{plural(preview.count, 'node')}</strong> would get{' '}
          <code>
            {body.acl.map(({ scheme, id, perms }) => `${scheme}:${id}:${perms}`).join(', ')}
          </code>
          , whatever each has now.
        </>
      )}
    </SubtreeDialog>
  );
}

function Text(props: {
  readonly label: string;
  readonly value: string;
  readonly isEditable: boolean;
  readonly onInput: (value: string) => void;
}) {
  return props.isEditable ? (
    <input
      class="field mono"
      aria-label={props.label}
      value={props.value}
      onInput={(event) => props.onInput(event.currentTarget.value)}
    />
  ) : (
    <span class="mono">{props.value}</span>
  );
}
