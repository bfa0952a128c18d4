/** `drover ensemble …`: the words a person says to an ensemble, and what they are told. */

import { resolve } from 'node:path';
import { findApache } from './apache.ts';
import { apacheVersion } from './apache-jars.ts';
import { Columns } from './columns.ts';
import type { Context, OptionValues } from './command.ts';
import { checkPorts, LocalEnsemble, localMembers } from './ensemble.ts';
import {
  checkSize,
  composeFile,
  connectionString,
  type Member,
  membersOf,
  type Settings,
  systemdUnit,
  zooCfg,
} from './ensemble-files.ts';
import { importData } from './ensemble-import.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { escaped, foundCode, hex } from './output.ts';
import { refuseInBrowser } from './places.ts';

type Action = (context: Context, args: readonly string[], options: OptionValues) => Promise<number>;

interface Entry {
  readonly usage: string;
  readonly args: readonly [least: number, most: number];
  readonly run: Action;
}

const defaultDir = './drover-ensemble';

// biome-ignore format: a table is read down its columns
const actions: Readonly<Record<string, Entry>> = {
  up:     { usage: 'up [--size 3] [--dir D] [--port 2181]',  args: [0, 0], run: up },
  import: { usage: 'import --from DATADIR [--dir D]',        args: [0, 0], run: importFrom },
  status: { usage: 'status [--dir D]',                       args: [0, 0], run: status },
  start:  { usage: 'start N [--dir D]',                      args: [1, 1], run: start },
  kill:   { usage: 'kill N [--dir D]',                       args: [1, 1], run: kill },
  down:   { usage: 'down [--dir D]',                         args: [0, 0], run: down },
  config: { usage: 'config --hosts zoo1,zoo2,zoo3',          args: [0, 0], run: config },
};

export const ensembleActions: readonly string[] = Object.keys(actions);

export async function ensembleCommand(
  context: Context,
  [name = '', ...args]: readonly string[],
  options: OptionValues,
): Promise<number> {
  refuseInBrowser(context);
  const action = Object.hasOwn(actions, name) ? actions[name]! : undefined;
  if (action === undefined) {
    const usages = Object.values(actions).map(({ usage }) => `drover ensemble ${usage}`);
    const what = name === '' ? 'what about it?' : `no ensemble ${escaped(name)};`;
    throw new CommandError('usage', `${what} there is ${usages.join(', ')}`);
  }
  const [least, most] = action.args;
  if (args.length < least || args.length > most) {
    throw new CommandError('usage', `it is drover ensemble ${action.usage}`);
  }
  return action.run(context, args, options);
}

async function up(context: Context, _: readonly string[], options: OptionValues): Promise<number> {
  const dir = dirOf(options);
  if (!LocalEnsemble.isAt(dir)) return begin(context, options);
  const ensemble = await LocalEnsemble.open(dir);
  const size = options.size === undefined ? undefined : sizeOf(options);
  if (size !== undefined && size !== ensemble.members.length) {
    const message = `${dir} holds an ensemble of ${ensemble.members.length}; name another --dir for one of ${size}`;
    throw new CommandError('usage', message);
  }
  await ensemble.startAll(context.signal);
  return sayUp(context, ensemble);
}

async function importFrom(
  context: Context,
  _: readonly string[],
  options: OptionValues,
): Promise<number> {
  if (typeof options.from !== 'string') {
    throw new CommandError(
      'usage',
      '--from: the dataDir of the server that is to become an ensemble',
    );
  }
  if (LocalEnsemble.isAt(dirOf(options))) {
    const message = `${dirOf(options)} holds an ensemble already, and its data is not replaced; name another --dir`;
    throw new CommandError('usage', message);
  }
  return begin(context, options);
}

/** Everything is checked and written before anything is started; and only what started is saved. */
async function begin(context: Context, options: OptionValues): Promise<number> {
  const { output, signal } = context;
  const dir = dirOf(options);
  const size = sizeOf(options);
  const settings = settingsOf(options);
  const heapMiB = countOf(options, 'heap', 512, 64, 1_048_576);
  const client = countOf(options, 'port', 2181, 0, 65_535);
  const members = await localMembers(size, {
    client,
    quorum: countOf(options, 'quorumPort', client === 0 ? 0 : 2888, 0, 65_535),
    election: countOf(options, 'electionPort', client === 0 ? 0 : 3888, 0, 65_535),
  });
  checkDistinct(members);
  await checkPorts(members);
  const peer = await findApache({
    env: { ...context.environment },
    signal,
    log: (line) => output.tell(line),
  });
  const ensemble = await LocalEnsemble.create({ dir, peer, members, settings, heapMiB });
  try {
    if (typeof options.from === 'string') await takeData(context, ensemble, options);
    await ensemble.save(); // from here on `down` finds it
  } catch (error) {
    await ensemble.discard();
    throw error;
  }
  await ensemble.startAll(signal);
  return sayUp(context, ensemble);
}

async function takeData(
  { output }: Context,
  ensemble: LocalEnsemble,
  { from, fromLog }: OptionValues,
): Promise<void> {
  const dataLogDir = typeof fromLog === 'string' ? resolve(fromLog) : undefined;
  const source = { dataDir: resolve(String(from)), dataLogDir };
  const { lastZxid, files } = await importData(source, ensemble, (path) =>
    output.status(`copying ${escaped(path)}`),
  );
  const size = ensemble.members.length;
  output.tell(`${files} files copied to each of ${size}, up to zxid ${hex(lastZxid)}`);
}

async function sayUp({ output, signal }: Context, ensemble: LocalEnsemble): Promise<number> {
  const { peer, members, dir } = ensemble;
  const all = await ensemble.status(signal);
  const leader = all.find(({ mode }) => mode === 'leader')?.member.id;
  if (output.isJson) {
    output.record({
      servers: ensemble.connectionString,
      dir,
      zooKeeper: peer.name,
      leader: leader ?? null,
      members: all.map(({ member, pid }) => ({ ...member, pid: pid ?? null })),
    });
    return exitCodes.ok;
  }
  output.tell(
    `${members.length} servers of ${peer.name} in ${dir}${leader ? `, led by ${leader}` : ''}; drover ensemble down --dir ${dir} ends them`,
  );
  output.line(ensemble.connectionString);
  return exitCodes.ok;
}

async function status(
  { output, signal }: Context,
  _: readonly string[],
  options: OptionValues,
): Promise<number> {
  const ensemble = await LocalEnsemble.open(dirOf(options));
  const all = await ensemble.status(signal);
  const serving = all.filter(({ mode }) => mode !== undefined).length;
  const hasQuorum = serving > all.length / 2;
  if (output.isJson) {
    for (const { member, pid, mode, zxid } of all) {
      output.record({ ...member, pid: pid ?? null, mode: mode ?? null, zxid: zxid ?? null });
    }
    return hasQuorum ? exitCodes.ok : foundCode;
  }
  const columns = new Columns(output, 'ID', 'SERVER', 'PID', 'MODE', 'ZXID');
  for (const { member, pid, mode, zxid } of all) {
    const state = pid === undefined ? 'down' : (mode ?? 'not serving');
    const server = connectionString([member]);
    columns.row(`${member.id}`, server, `${pid ?? '-'}`, escaped(state), escaped(zxid ?? '-'));
  }
  columns.end();
  if (!hasQuorum) output.tell(`no quorum: ${serving} of ${all.length} serve`);
  return hasQuorum ? exitCodes.ok : foundCode;
}

async function start(
  { output, signal }: Context,
  [text]: readonly string[],
  options: OptionValues,
): Promise<number> {
  const ensemble = await LocalEnsemble.open(dirOf(options));
  const id = idOf(text);
  const serving = (await ensemble.status(signal)).filter(({ mode }) => mode !== undefined);
  const isStarted = await ensemble.start(id);
  const majority = Math.floor(ensemble.members.length / 2) + 1;
  // Alone it can't serve: then running is all that can be waited for.
  if (serving.length + 1 >= majority) await ensemble.untilServing(serving.length + 1, signal);
  return say(
    output,
    { id, started: isStarted },
    isStarted ? `server ${id} is up` : `server ${id} ran already`,
  );
}

async function kill(
  { output }: Context,
  [text]: readonly string[],
  options: OptionValues,
): Promise<number> {
  const ensemble = await LocalEnsemble.open(dirOf(options));
  const id = idOf(text);
  const wasRunning = await ensemble.process(id).kill();
  const said = wasRunning ? `server ${id} is killed` : `server ${id} was not running`;
  say(output, { id, killed: wasRunning }, said);
  return wasRunning ? exitCodes.ok : foundCode;
}

async function down(
  { output }: Context,
  _: readonly string[],
  options: OptionValues,
): Promise<number> {
  const ensemble = await LocalEnsemble.open(dirOf(options));
  const ended = await ensemble.stopAll();
  return say(
    output,
    { dir: ensemble.dir, ended },
    `${ended} servers ended; their data stays in ${ensemble.dir}`,
  );
}

/** Only prints: these files are for other machines. */
async function config(
  { output }: Context,
  _: readonly string[],
  options: OptionValues,
): Promise<number> {
  if (typeof options.hosts !== 'string') {
    throw new CommandError(
      'usage',
      '--hosts: zoo1,zoo2,zoo3, the machines that are to be an ensemble',
    );
  }
  const members = membersOf(options.hosts);
  const settings = settingsOf(options);
  const folders = { data: '/var/lib/zookeeper/data', log: '/var/lib/zookeeper/log' };
  const files = [
    ...members.flatMap((member) => [
      {
        host: member.host,
        path: '/etc/zookeeper/zoo.cfg',
        text: zooCfg(member, members, folders, settings),
      },
      { host: member.host, path: `${folders.data}/myid`, text: `${member.id}\n` },
    ]),
    { host: null, path: '/etc/systemd/system/zookeeper.service', text: systemdUnit() },
    { host: null, path: 'compose.yaml', text: composeFile(members, apacheVersion) },
  ];
  if (output.isJson) for (const file of files) output.record(file);
  else {
    for (const { host, path, text } of files) {
      output.line(`# ── ${host ?? 'every host'}: ${path}`);
      output.write(`${text}\n`);
    }
    output.line(`# clients connect to ${connectionString(members)}`);
  }
  if (members.length % 2 === 0) {
    output.tell(`${members.length} servers bear no more failures than ${members.length - 1}`);
  }
  return exitCodes.ok;
}

// ── what was asked for ────────────────────────────────────────────────────────────────────────────

function say(output: Context['output'], record: object, sentence: string): number {
  if (output.isJson) output.record(record);
  else output.tell(sentence);
  return exitCodes.ok;
}

function dirOf({ dir }: OptionValues): string {
  return resolve(typeof dir === 'string' ? dir : defaultDir);
}

function sizeOf({ size }: OptionValues): number {
  const count = size === undefined ? 3 : Number(size);
  checkSize(count, '--size');
  return count;
}

function idOf(text: string | undefined): number {
  const id = Number(text);
  if (!Number.isInteger(id))
    throw new CommandError('usage', `${escaped(text ?? '')}: a server's number is wanted`);
  return id;
}

function countOf(
  options: OptionValues,
  name: string,
  unless: number,
  min: number,
  max: number,
): number {
  const given = options[name];
  if (given === undefined) return unless;
  const value = Number(given);
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  const flag = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw new CommandError('usage', `--${flag}: a number from ${min} to ${max} is wanted`);
}

function settingsOf({ set }: OptionValues): Settings {
  const settings: Record<string, string> = {};
  for (const text of (set ?? []) as readonly string[]) {
    const at = text.indexOf('=');
    if (at < 1) throw new CommandError('usage', `--set ${escaped(text)}: key=value is wanted`);
    settings[text.slice(0, at)] = text.slice(at + 1);
  }
  return settings;
}

function checkDistinct(members: readonly Member[]): void {
  const ports = members.flatMap((m) => [m.clientPort, m.quorumPort, m.electionPort]);
  const wrong = ports.find((port, i) => port > 65_535 || ports.indexOf(port) !== i);
  if (wrong === undefined) return;
  throw new CommandError(
    'usage',
    `port ${wrong} is used twice or is none: choose --port, --quorum-port and --election-port further apart`,
  );
}
