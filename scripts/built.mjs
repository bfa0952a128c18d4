/**
 * Builds what is not built, or is older than its source. Imported by who needs it, or run by itself.
 * Plain JavaScript on built-ins alone, since nothing else is there yet when it runs.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = new URL('..', import.meta.url);
const main = new URL('dist/bin/drover.js', root);

const writtenMs = (file) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;

function newestSourceMs() {
  const files = ['src/', 'web/'].flatMap((folder) => {
    const source = new URL(folder, root);
    return readdirSync(source, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(tsx?|css|html)$/.test(name) && !name.endsWith('.test.ts'))
      .map((name) => new URL(name.replaceAll('\\', '/'), source));
  });
  const settings = ['package.json', 'scripts/build.mjs', 'tsconfig.json', 'tsconfig.build.json'];
  const all = [...files, ...settings.map((name) => new URL(name, root))];
  return Math.max(...all.map(writtenMs));
}

if (writtenMs(main) < newestSourceMs()) {
  console.error('drover: building …');
  const { status } = spawnSync(
    process.execPath,
    [fileURLToPath(new URL('build.mjs', import.meta.url))],
    {
      stdio: ['ignore', 2, 2],
    },
  );
  if (status !== 0) {
    console.error('drover: the build failed; npm run check says more');
    process.exit(1);
  }
  performance.mark('drover built'); // what the server says it took counts from here
}
