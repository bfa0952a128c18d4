#!/usr/bin/env node
/**
 * What the `drover` command starts with: loads core.js beside it, and server.js when that is asked for,
 * each with the machine code's forerunner that V8 made of it when it was built (NAME-VERSION.cache). V8
 * takes that only from its own version; any other Node compiles them itself, and where it can keep what
 * it compiled (22.8 and later), it does.
 *
 * scripts/build.mjs puts this file into dist/bin.
 */
'use strict';

const { readFileSync } = require('node:fs');
const Module = require('node:module');
const { join } = require('node:path');
const { Script } = require('node:vm');

/** Null: there is none, or it is none, and the file alone will do. */
function cached(name, file) {
  try {
    const cachedData = readFileSync(join(__dirname, `${name}-${process.versions.v8}.cache`));
    const source = readFileSync(file, 'latin1'); // the build leaves nothing but ASCII in it
    const script = new Script(Module.wrap(source), {
      filename: file,
      cachedData,
    });
    return script.cachedDataRejected ? null : script;
  } catch {
    return null;
  }
}

/** In the user's own folder: what lies in one that all may write to must not be run. */
function keepCompiled() {
  const { XDG_CACHE_HOME, HOME } = process.env;
  const base = XDG_CACHE_HOME || (HOME && join(HOME, '.cache'));
  if (base) Module.enableCompileCache?.(join(base, 'drover'));
}

/** As require would: other parts of the command find this one, and not a second one. */
function load(name, otherwise) {
  const file = join(__dirname, `${name}.js`);
  if (require.cache[file] !== undefined) return require.cache[file].exports;
  const script = cached(name, file);
  if (script === null) {
    otherwise();
    return require(file);
  }
  const made = new Module(file, module);
  made.filename = file;
  made.paths = module.paths;
  require.cache[file] = made;
  script.runInThisContext().call(made.exports, made.exports, find, made, file, __dirname);
  made.loaded = true;
  return made.exports;
}

function find(id) {
  return id === './server.js' ? load('server', () => {}) : require(id);
}

load('core', keepCompiled);
