/**
 * Nodes that are carried from one place to another, by copy and paste or by the mouse: between the rows of a
 * tree, and between pages that look at different clusters. What is carried is where they are, and not what
 * they hold; dropped, the copy dialog opens, which looks first and writes nothing until it is told to.
 */

const type = 'application/x-drover-nodes';
const pathsMax = 1_000;

export interface Carried {
  /** Where they are: a saved context, or null for where the console was started for. */
  readonly from: string | null;
  readonly paths: readonly string[];
}

export function carry(into: DataTransfer, { from, paths }: Carried): void {
  into.setData(type, JSON.stringify({ from, paths: paths.slice(0, pathsMax) }));
  into.setData('text/plain', paths.join('\n'));
}

/** While something is dragged only its type is known. */
export const isCarried = (data: DataTransfer) => data.types.includes(type);

/** Null: something else. It may come from any page, so it is looked at closely. */
export function carried(data: DataTransfer): Carried | null {
  try {
    const { from, paths } = JSON.parse(data.getData(type)) as Partial<Carried>;
    const isPath = (one: unknown) => typeof one === 'string' && one.startsWith('/');
    const isRight =
      (from === null || typeof from === 'string') &&
      Array.isArray(paths) &&
      paths.length > 0 &&
      paths.length <= pathsMax &&
      paths.every(isPath);
    return isRight ? { from: from as string | null, paths } : null;
  } catch {
    return null; // not ours
  }
}
