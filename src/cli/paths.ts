/** What a person writes for a path, as the path that a server is asked for. */

/**
 * Relative to `cwd`, with `.` and `..`, which can be no names in ZooKeeper. A slash at the end is kept
 * where it means something: the name of a sequential node may be its number alone.
 */
export function resolvePath(cwd: string, text = '', keepsSlash = false): string {
  if (text.startsWith('/') && !/\/(\.{0,2}\/|\.{1,2}$|$)/.test(text)) return text;
  const isAbsolute = text.startsWith('/');
  const names = isAbsolute ? [] : cwd.split('/').filter(Boolean);
  for (const name of text.split('/')) {
    if (name === '..') names.pop();
    else if (name !== '' && name !== '.') names.push(name);
  }
  const path = `/${names.join('/')}`;
  return keepsSlash && text.endsWith('/') && path !== '/' ? `${path}/` : path;
}
