/**
 * Paths: which are legal, and how to walk them. The rules are PathUtils.validatePath's, measured in
 * UTF-16 units as Java does.
 */

/** Why a path is not legal, or null when it is. */
export function pathFault(path: string): string | null {
  if (path.length === 0) return 'a path must not be empty';
  if (path.charCodeAt(0) !== 0x2f) return 'a path must start with /';
  if (path.length === 1) return null;
  if (path.charCodeAt(path.length - 1) === 0x2f) return 'a path must not end with /';

  let start = 1;
  for (let i = 1; i <= path.length; i++) {
    const unit = i === path.length ? 0x2f : path.charCodeAt(i);
    if (unit === 0x2f) {
      const length = i - start;
      if (length === 0) return `a path must have no empty name, at character ${i}`;
      if (length === 1 && path[start] === '.') return `"." is no name, at character ${start}`;
      if (length === 2 && path[start] === '.' && path[start + 1] === '.') {
        return `".." is no name, at character ${start}`;
      }
      start = i + 1;
    } else if (isRefused(unit)) {
      return `character U+${unit.toString(16).toUpperCase().padStart(4, '0')} is not allowed, at character ${i}`;
    }
  }
  return null;
}

function isRefused(unit: number): boolean {
  return (
    unit < 0x20 ||
    (unit >= 0x7f && unit <= 0x9f) ||
    (unit >= 0xd800 && unit <= 0xf8ff) ||
    (unit >= 0xfff0 && unit <= 0xffff)
  );
}

/** `/a/b` gives `/a`, `/a` gives `/`; the root has none. */
export function parentOf(path: string): string | null {
  if (path === '/') return null;
  const slash = path.lastIndexOf('/');
  return slash === 0 ? '/' : path.slice(0, slash);
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

export function childOf(parent: string, name: string): string {
  return parent === '/' ? `/${name}` : `${parent}/${name}`;
}

/** True when `path` is `ancestor` or stands below it. */
export function isWithin(path: string, ancestor: string): boolean {
  return (
    ancestor === '/' ||
    path === ancestor ||
    (path.startsWith(ancestor) && path.charCodeAt(ancestor.length) === 0x2f)
  );
}

/** The suffix of a sequential create: Java's %010d, so a counter past 2^31-1 comes out negative. */
export function sequenceSuffix(counter: number): string {
  const int = counter | 0;
  return int < 0 ? `-${String(-int).padStart(9, '0')}` : String(int).padStart(10, '0');
}
