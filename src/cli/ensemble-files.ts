/**
 * The files of an ensemble, as text: zoo.cfg and myid of each server, a systemd unit, a compose file.
 *
 * In: the servers, each with its hosts and ports. Out: what is written or printed; nothing is touched
 * here. The keys are those of every ZooKeeper guide: tickTime, initLimit, syncLimit, dataDir,
 * dataLogDir, clientPort and a server.N for each.
 */

import { CommandError } from './exit-codes.ts';

export interface Member {
  /** Its `myid`. */
  readonly id: number;
  readonly host: string;
  readonly clientPort: number;
  /** Where the leader listens for followers. */
  readonly quorumPort: number;
  readonly electionPort: number;
}

export interface Folders {
  readonly data: string;
  readonly log: string;
}

export const sizeMax = 99;

/** Few words beyond what monitoring asks for: whoever can dial may ask, and wchc and dump cost a lot. */
const wordsForMonitoring = 'srvr, stat, mntr, ruok, conf, isro, wchs, cons, dirs';

export type Settings = Readonly<Record<string, string>>;

/** The settings that all servers of an ensemble share. */
export const sharedSettings: Settings = {
  tickTime: '2000',
  initLimit: '10',
  syncLimit: '5',
  '4lw.commands.whitelist': wordsForMonitoring,
  // Off: unconfigured it listens on all interfaces, in clear text.
  'admin.enableServer': 'false',
  // Ours has nodes with a time to live switched on; without it Apache refuses data that has some.
  extendedTypesEnabled: 'true',
  'autopurge.snapRetainCount': '3',
  'autopurge.purgeInterval': '24',
};

/** One server's zoo.cfg. What `settings` names wins; a server.N or a folder in it is refused. */
export function zooCfg(
  member: Member,
  members: readonly Member[],
  folders: Folders,
  settings: Settings = {},
): string {
  const isLocal = members.every(({ host }) => isLoopbackHost(host));
  const values: Record<string, string> = {
    ...sharedSettings,
    dataDir: folders.data,
    dataLogDir: folders.log,
    clientPort: String(member.clientPort),
    ...(isLocal ? { clientPortAddress: member.host } : {}),
  };
  for (const [key, value] of Object.entries(settings)) {
    if (/^server\.\d+$/.test(key) || ['dataDir', 'dataLogDir', 'clientPort'].includes(key)) {
      throw new CommandError('usage', `--set ${key}: that follows from --size, --dir and --port`);
    }
    if (/[\r\n]/.test(key + value) || key === '') {
      throw new CommandError('usage', '--set: key=value on one line is wanted');
    }
    values[key] = value;
  }
  const lines = Object.entries(values).map(([key, value]) => `${key}=${escapedValue(value)}`);
  return `${[...lines, ...members.map(serverLine)].join('\n')}\n`;
}

/** Java's properties take a backslash for the start of an escape. */
function escapedValue(value: string): string {
  return value.replaceAll('\\', '\\\\');
}

function serverLine({ id, host, quorumPort, electionPort }: Member): string {
  return `server.${id}=${bracketed(host)}:${quorumPort}:${electionPort}`;
}

export function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\./.test(host);
}

/** What clients connect to. */
export function connectionString(members: readonly Member[]): string {
  return members.map(({ host, clientPort }) => `${bracketed(host)}:${clientPort}`).join(',');
}

/** A unit for one host, where Apache's release is unpacked in /opt/zookeeper. */
export function systemdUnit(): string {
  return `[Unit]
Description=Apache ZooKeeper
Wants=network-online.target
After=network-online.target

[Service]
Type=simple
User=zookeeper
ExecStart=/opt/zookeeper/bin/zkServer.sh --config /etc/zookeeper start-foreground
Restart=on-failure
RestartSec=5
TimeoutStopSec=60
LimitNOFILE=65536
# A JVM that is ended by SIGTERM says 143, which is no failure.
SuccessExitStatus=143

[Install]
WantedBy=multi-user.target
`;
}

/** All servers on one machine, each in a container; for other machines split it by service. */
export function composeFile(members: readonly Member[], version: string): string {
  const servers = members.map(({ id }) => `server.${id}=zoo${id}:2888:3888;2181`).join(' ');
  const services = members.map(
    ({ id }) => `  zoo${id}:
    image: zookeeper:${version}
    restart: unless-stopped
    hostname: zoo${id}
    ports: ["127.0.0.1:${2180 + id}:2181"]
    environment:
      ZOO_MY_ID: ${id}
      ZOO_SERVERS: ${servers}
      ZOO_CFG_EXTRA: extendedTypesEnabled=true
      ZOO_4LW_COMMANDS_WHITELIST: ${wordsForMonitoring}
      ZOO_ADMINSERVER_ENABLED: "false"
    volumes: ["zoo${id}-data:/data", "zoo${id}-log:/datalog"]
`,
  );
  const volumes = members.map(({ id }) => `  zoo${id}-data:\n  zoo${id}-log:\n`);
  return `services:\n${services.join('')}volumes:\n${volumes.join('')}`;
}

/** `zoo1,zoo2:2182,…`: hosts for `drover ensemble config`. */
export function membersOf(hosts: string): Member[] {
  const texts = hosts
    .split(',')
    .map((text) => text.trim())
    .filter((text) => text !== '');
  checkSize(texts.length, '--hosts');
  const members = texts.map((text, index) => {
    const match = /^(?:\[([0-9a-fA-F:]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/.exec(text);
    const clientPort = Number(match?.[3] ?? 2181);
    if (match === null || clientPort < 1 || clientPort > 65_535) {
      throw new CommandError('usage', `--hosts: ${JSON.stringify(text)} is no host or host:port`);
    }
    const host = (match[1] ?? match[2])!;
    return { id: index + 1, host, clientPort, quorumPort: 2888, electionPort: 3888 };
  });
  const twice = members.find(({ host }, i) => members.findIndex((m) => m.host === host) !== i);
  if (twice !== undefined) {
    throw new CommandError(
      'usage',
      `--hosts: ${twice.host} is named twice; a host runs one server`,
    );
  }
  return members;
}

/** An even number of servers bears no more failures than one less, and an ensemble of one is none. */
export function checkSize(size: number, option: string): void {
  if (Number.isInteger(size) && size >= 1 && size <= sizeMax) return;
  throw new CommandError(
    'usage',
    `${option}: 1 to ${sizeMax} servers are wanted, 3 or 5 are usual`,
  );
}
