/**
 * Builds dist/ from src/: tsc makes the library, module by module, with types; the command line is then
 * put together into a few files in dist/bin, because Node takes about a millisecond for each module it
 * loads, and `drover ls /` needs eighty. Packages stay outside. Vite builds the console's page into
 * dist/web.
 */
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = new URL('..', import.meta.url);
const at = (path) => fileURLToPath(new URL(path, root));

rmSync(at('dist'), { recursive: true, force: true });
const compiler = at('node_modules/typescript/bin/tsc');
const { status } = spawnSync(process.execPath, [compiler, '-p', 'tsconfig.build.json'], {
  cwd: at('.'),
  stdio: ['ignore', 2, 2],
});
if (status !== 0) process.exit(1);

// Found only once packages are installed, which whoever calls this sees to.
const { build } = await import('rolldown');
await build({
  input: at('dist/cli/main.js'),
  platform: 'node',
  external: (name) => !name.startsWith('.') && !name.startsWith('/'),
  output: {
    dir: at('dist/bin'),
    format: 'esm',
    entryFileNames: 'drover.js',
    chunkFileNames: '[name]-[hash].js',
  },
  logLevel: 'warn',
});
rmSync(at('dist/cli'), { recursive: true, force: true });

const vite = at('node_modules/vite/bin/vite.js');
const page = spawnSync(process.execPath, [vite, 'build', 'web', '--logLevel', 'warn'], {
  cwd: at('.'),
  stdio: ['ignore', 2, 2],
});
if (page.status !== 0) process.exit(1);
