#!/usr/bin/env node
/**
 * What the `drover` command starts with: loads core.js beside it, with the machine code's forerunner that
 * V8 made of it when it was built (core-VERSION.cache). V8 takes that only from its own version; any
 * other Node compiles core.js itself, and where it can keep what it compiled (22.8 and later), it does.
 *
 * scripts/build.mjs puts this file into dist/bin.
 */
'use strict';

const { readFileSync } = require('node:fs');
const Module = require('node:module');
const { join } = require('node:path');
const { Script } = require('node:vm');

const file = join(__dirname, 'core.js');

function cached() {
  try {
    const cachedData = readFileSync(join(__dirname, `core-${process.versions.v8}.cache`));
    const source = readFileSync(file, 'latin1'); // the build leaves nothing but ASCII in it
    const script = new Script(Module.wrap(source), {
      filename: file,
      cachedData,
    });
    return script.cachedDataRejected ? null : script;
  } catch {
    return null; // there is none, or it is none: core.js alone will do
  }
}

/** In the user's own folder: what lies in one that all may write to must not be run. */
function keepCompiled() {
  const { XDG_CACHE_HOME, HOME } = process.env;
  const base = XDG_CACHE_HOME || (HOME && join(HOME, '.cache'));
  if (base) Module.enableCompileCache?.(join(base, 'drover'));
}

const script = cached();
if (script === null) {
  keepCompiled();
  require(file);
} else {
  // As require would: other parts of the command find this one, and not a second one.
  const core = new Module(file, module);
  core.filename = file;
  core.paths = module.paths;
  require.cache[file] = core;
  script.runInThisContext().call(core.exports, core.exports, require, core, file, __dirname);
  core.loaded = true;
}
