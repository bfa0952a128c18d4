/**
 * Makes core-VERSION.cache and server-VERSION.cache out of core.js and server.js in dist/bin: what V8
 * compiled of them, once a command that is quick has run. V8 keeps the functions that have been called, so
 * commands are called, in this process:
 *   core     `ls /` on a server of a few lines that knows the answer to it
 *   server   `serve`, until it has made a session
 * In: the folder and which of the two, as arguments.
 */
'use strict';

const { mkdtempSync, readFileSync, rmSync, writeFileSync } = require('node:fs');
const Module = require('node:module');
const { connect, createServer } = require('node:net');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const v8 = require('node:v8');
const { Script } = require('node:vm');

const [folder, wanted] = process.argv.slice(2);
const scripts = new Map();

function load(name) {
  const file = join(folder, `${name}.js`);
  if (require.cache[file] !== undefined) return require.cache[file].exports;
  const made = new Module(file, module);
  made.filename = file;
  require.cache[file] = made;
  const itsRequire = Module.createRequire(file);
  const find = (id) => (id === './server.js' ? load('server') : itsRequire(id));
  const script = new Script(Module.wrap(readFileSync(file, 'latin1')), {
    filename: `${name}.js`, // stack traces show this name, wherever the package comes to lie
  });
  scripts.set(name, script);
  script.runInThisContext().call(made.exports, made.exports, find, made, file, folder);
  return made.exports;
}

function keep() {
  const data = scripts.get(wanted).createCachedData();
  writeFileSync(join(folder, `${wanted}-${process.versions.v8}.cache`), data);
}

/** What the command prints is for nobody but `heard`. */
function run(args, heard) {
  process.argv = [process.execPath, join(folder, 'core.js'), ...args];
  process.stdout.write = (text, done) => {
    if (typeof done === 'function') process.nextTick(done);
    heard(String(text));
    return true;
  };
  load('core');
}

function framed(...parts) {
  const body = Buffer.concat(parts);
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length);
  return Buffer.concat([length, body]);
}

// ── core ──────────────────────────────────────────────────────────────────────────────────────────

function welcome() {
  const body = Buffer.alloc(37);
  body.writeInt32BE(30_000, 4);
  body.writeBigInt64BE(1n, 8);
  body.writeInt32BE(16, 16);
  return framed(body);
}

function reply(xid, body) {
  const header = Buffer.alloc(16);
  header.writeInt32BE(xid);
  header.writeBigInt64BE(1n, 4);
  return framed(header, body);
}

function children() {
  const names = ['brokers', 'zookeeper'].map((name) => framed(Buffer.from(name)));
  const count = Buffer.alloc(4);
  count.writeInt32BE(names.length);
  return Buffer.concat([count, ...names, Buffer.alloc(68)]);
}

/** An answer to connect, then one to getChildren2, then one to closeSession. */
function answers(socket) {
  let asked = 0;
  socket.on('data', () => {
    asked += 1;
    if (asked === 1) socket.write(welcome());
    else
      socket.write(asked === 2 ? reply(asked - 1, children()) : reply(asked - 1, Buffer.alloc(0)));
  });
  socket.on('error', () => {});
}

function cacheCore() {
  const server = createServer(answers).listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    run(['--server', `127.0.0.1:${port}`, 'ls', '/'], () => server.close());
  });
  process.once('exit', (code) => {
    if (code !== 0) process.stderr.write(`code-cache: ls / ended with ${code}\n`);
    else keep();
  });
}

// ── server ────────────────────────────────────────────────────────────────────────────────────────

/** A connect request: no session of before, 30 s, a password of 16 zeros. */
function hello() {
  const body = Buffer.alloc(45);
  body.writeInt32BE(30_000, 12);
  body.writeInt32BE(16, 24);
  return framed(body);
}

function cacheServer() {
  const data = mkdtempSync(join(tmpdir(), 'drover-build-'));
  process.once('exit', (code) => {
    rmSync(data, { recursive: true, force: true });
    if (code !== 0) process.stderr.write(`code-cache: serve ended with ${code}\n`);
  });
  v8.setFlagsFromString = () => {}; // what is compiled with other flags V8 does not take
  process.stderr.write = () => true;
  run(['serve', '--port', '0', '--data', data, '--json'], (text) => {
    const socket = connect(Number(JSON.parse(text).address.split(':')[1]), '127.0.0.1');
    socket.write(hello());
    socket.once('data', () => {
      keep();
      socket.destroy();
      process.kill(process.pid, 'SIGTERM');
    });
  });
}

({ core: cacheCore, server: cacheServer })[wanted]();
