/**
 * Who may do what with a node, and the editor for it. The hash of a digest is never shown: the server
 * leaves it out, and keeps the one that stands there where an entry comes back unchanged.
 */
import { useEffect, useState } from 'preact/hooks';
import type { AclEntry, BodyOf, ChangedView, NodeView } from '../../src/console/api.ts';
import { canWrite } from './live.ts';
import { tell, tellError } from './overlay.tsx';
import { post } from './transport.ts';
import { Empty } from './ui.tsx';

const rights = [
  ['r', 'read'],
  ['w', 'write'],
  ['c', 'create children'],
  ['d', 'delete children'],
  ['a', 'admin'],
] as const;

export function NodeAcl(props: { readonly node: NodeView; readonly reload: () => void }) {
  const { node } = props;
  const [draft, setDraft] = useState<readonly AclEntry[] | null>(null);
  const [isRecursive, setRecursive] = useState(false);
  useEffect(() => setDraft(null), [node.path]);
  if (node.acl === null) return <Empty title="The ACL may not be read by this session" />;
  const entries = draft ?? node.acl;
  const put = (index: number, entry: AclEntry | null) =>
    setDraft(entries.flatMap((old, at) => (at === index ? (entry ? [entry] : []) : [old])));
  const save = async () => {
    const body: BodyOf<'acl'> = {
      path: node.path,
      acl: entries.map((entry) => ({ ...entry })),
      version: node.stat.aversion,
      recursive: isRecursive,
    };
    try {
      await post<ChangedView>('/api/node/acl', body);
      tell(`The ACL of ${node.path} is set.`);
      setDraft(null);
      props.reload();
    } catch (error) {
      tellError(error);
    }
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
            disabled={!draft || entries.some(({ perms }) => perms === '')}
            onClick={() => void save()}
          >
            Set ACL
          </button>
        </div>
      ) : null}
    </>
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
