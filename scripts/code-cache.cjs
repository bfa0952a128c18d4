/**
 * Makes core-VERSION.cache out of dist/bin/core.js: what V8 compiled of it, once a command that is quick has run.
 * In: the folder, as an argument. V8 keeps the functions that have been called, so a command is called:
 * `ls /` on a server of a few lines that knows the answer to it, in this process.
 */
'use strict';

const { readFileSync, writeFileSync } = require('node:fs');
const Module = require('node:module');
const { createServer } = require('node:net');
const { join } = require('node:path');
const { Script } = require('node:vm');

const folder = process.argv[2];
const file = join(folder, 'core.js');

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

function framed(...parts) {
  const body = Buffer.concat(parts);
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length);
  return Buffer.concat([length, body]);
}

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

const server = createServer(answers).listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  process.argv = [process.execPath, file, '--server', `127.0.0.1:${port}`, 'ls', '/'];
  const core = new Module(file, module);
  core.filename = file;
  require.cache[file] = core;
  const coreRequire = Module.createRequire(file);
  const script = new Script(Module.wrap(readFileSync(file, 'latin1')), {
    filename: 'core.js', // stack traces show this name, wherever the package comes to lie
  });
  // The answer is for nobody.
  process.stdout.write = (_text, done) => {
    if (typeof done === 'function') process.nextTick(done);
    server.close();
    return true;
  };
  script.runInThisContext().call(core.exports, core.exports, coreRequire, core, file, folder);
  process.once('exit', (code) => {
    if (code !== 0) process.stderr.write(`code-cache: ls / ended with ${code}\n`);
    else
      writeFileSync(join(folder, `core-${process.versions.v8}.cache`), script.createCachedData());
  });
});
