/**
 * Builds dist/ from src/: tsc makes the library, module by module, with types; the command line is then
 * put together into a few files in dist/bin. Vite builds the console's page into dist/web. What was in
 * dist before stays until all of it is done, and where something fails.
 *
 * `drover ls /` is to answer at once, and nearly all of its time is Node's for loading code. So:
 *   - what every command needs is one file, core.js, what a server needs is server.js, and each command's
 *     own code is another;
 *   - these are CommonJS, since Node's loader of ES modules takes three milliseconds by itself;
 *   - Node's own modules and packages, which stay outside, are loaded when they are first used;
 *   - core-VERSION.cache and server-VERSION.cache hold what V8 compiled of these two, and drover.js
 *     (scripts/drover.cjs) loads them with it.
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = new URL('..', import.meta.url);
const at = (path) => fileURLToPath(new URL(path, root));

// Beside dist, at the same depth, since maps of the source hold paths that are relative to it. Each build
// has its own, so that two at once do no harm: the later one is what stays.
const next = `dist.next-${process.pid}`;
const before = `${next}-before`;
const attemptsMax = 5;
/** The parts that V8 compiles at the build. */
const cachedParts = ['core', 'server'];
process.on('exit', () => {
  const left = [next, ...Array.from({ length: attemptsMax }, (_, i) => `${before}-${i + 1}`)];
  for (const folder of left) rmSync(at(folder), { recursive: true, force: true });
});
run('node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json', '--outDir', next);
await buildCommand();
rmSync(at(`${next}/cli`), { recursive: true, force: true });
run(
  'node_modules/vite/bin/vite.js',
  'build',
  'web',
  '--logLevel',
  'warn',
  '--outDir',
  at(`${next}/web`),
);
replaceDist();

function run(program, ...args) {
  const { status } = spawnSync(process.execPath, [at(program), ...args], {
    cwd: at('.'),
    stdio: ['ignore', 2, 2],
  });
  if (status !== 0) process.exit(1);
}

function replaceDist() {
  for (let attempt = 1; ; attempt++) {
    try {
      if (existsSync(at('dist'))) renameSync(at('dist'), at(`${before}-${attempt}`));
      renameSync(at(next), at('dist'));
      return;
    } catch (error) {
      // Another build has just taken away what was there, or put its own there.
      if (!['ENOENT', 'ENOTEMPTY'].includes(error.code) || attempt === attemptsMax) throw error;
    }
  }
}

async function buildCommand() {
  // Found only once packages are installed, which whoever calls this sees to.
  const { build } = await import('rolldown');
  await build({
    input: at(`${next}/cli/main.js`),
    platform: 'node',
    external: (name) => !name.startsWith('.') && !name.startsWith('/'),
    output: {
      dir: at(`${next}/bin`),
      format: 'cjs',
      entryFileNames: 'core.js',
      chunkFileNames: ({ name }) => (name === 'server' ? 'server.js' : '[name]-[hash].js'),
      codeSplitting: {
        groups: [
          { name: 'core', test: isCore },
          { name: 'server', test: isServer },
        ],
      },
    },
    // Some of what is loaded late in the source is in core.js, on purpose.
    checks: { ineffectiveDynamicImport: false },
    logLevel: 'warn',
  });
  for (const name of readdirSync(at(`${next}/bin`))) {
    const file = at(`${next}/bin/${name}`);
    const code = readFileSync(file, 'utf8');
    const made = [withoutImports, withEsPackages, withLateRequires, inAscii].reduce(
      (text, step) => step(text),
      code,
    );
    if (cachedParts.some((part) => name === `${part}.js`) && /[^.\w]import\(/.test(made)) {
      throw new Error(
        `${name} has an import() of a package, which code out of the cache cannot do`,
      );
    }
    writeFileSync(file, made);
  }
  writeFileSync(at(`${next}/bin/package.json`), '{ "type": "commonjs" }\n');
  copyFileSync(at('scripts/drover.cjs'), at(`${next}/bin/drover.js`));
  chmodSync(at(`${next}/bin/drover.js`), 0o755);
  for (const name of cachedParts) run('scripts/code-cache.cjs', at(`${next}/bin`), name);
}

/** Below dist/, as it is written in the source. */
function pathOf(id) {
  return id.slice(at(`${next}/`).length).replaceAll('\\', '/');
}

/** Client, tables and the commands on single nodes. */
function isCore(id) {
  const path = pathOf(id);
  const quick = [
    'acl-text command commands data exit-codes json-keys main nodes output parse paths plain-words',
    'run session target watch-events words',
  ].flatMap((names) => names.split(' '));
  return (
    /^(client|protocol|jute|support|cli\/commands)\//.test(path) ||
    quick.some((name) => path === `cli/${name}.js`)
  );
}

/** What `drover serve` is ready with. */
function isServer(id) {
  const path = pathOf(id);
  return (
    /^(server|tree|storage)\//.test(path) || /^cli\/(serve(-\w+)?|v8-flags|within)\.js$/.test(path)
  );
}

/** Node's own modules are had by require too, which code out of the cache can do as well. */
function withoutImports(code) {
  return code.replace(/\bimport\(("node:[^"]+")\)/g, 'Promise.resolve(require($1))');
}

/** A package that is an ES module has its `default` already, and not in the way of CommonJS. */
function withEsPackages(code) {
  return code.replace(/^string_width = .*__toESM\(string_width, 1\);\n/gm, '');
}

/**
 * `let x = require("y")` at the top becomes a function that requires it once, when x is first used. Only
 * for names that nothing else has: those that rolldown gives to Node's modules, and commander.
 */
function withLateRequires(code) {
  const names = [];
  const declared = code.replace(
    /^let (node_\w+|commander) = require\("([^"]*)"\);\n(?:\1 = (.*__toESM)\(\1(.*)\);\n)?/gm,
    (_, name, module, toEsm, rest) => {
      names.push(name);
      const load = `require("${module}")`;
      return `let ${name}$;\nconst ${name} = () => (${name}$ ??= ${toEsm ? `${toEsm}(${load}${rest})` : load});\n`;
    },
  );
  return names.reduce(
    (text, name) =>
      text.replace(new RegExp(`(?<![\\w$."'\`])${name}\\.(?=[A-Za-z_$])`, 'g'), `(${name}()).`),
    declared,
  );
}

/** Escapes mean the same in strings, templates and patterns, and ASCII is read without decoding it. */
function inAscii(code) {
  return code.replace(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
