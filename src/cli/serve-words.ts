/** What a server says of itself: where it listens, how to stop it, and what is to be known meanwhile. */

import { resolve } from 'node:path';
import type { RunningConsole } from '../console/index.ts';
import {
  type AdminServer,
  droverVersion,
  type RunningServer,
  type ServerConfig,
  zooKeeperVersion,
} from '../server/index.ts';
import type { MetricsServer } from './metrics.ts';
import { escapedLines } from './words.ts';

/** One line, whatever a file of the user's has put into it. */
const line = (text: string): string => `${escapedLines(text.replaceAll('\n', '\\n'))}\n`;

export function tell(text: string): void {
  process.stderr.write(line(`drover: ${text}`));
}

/** As clients write it. */
export const at = (host: string, port: number) =>
  `${host.includes(':') ? `[${host}]` : host}:${port}`;

export interface Beside {
  readonly admin: AdminServer | undefined;
  readonly metrics: MetricsServer | undefined;
  readonly web: RunningConsole | undefined;
}

export function sayReady(
  config: ServerConfig,
  server: RunningServer,
  { admin, metrics, web }: Beside,
  asJson: boolean,
): void {
  const { dataDir, dataLogDir } = {
    dataDir: config.must('drover.inMemory') ? null : resolve(config.must('dataDir')),
    dataLogDir: config.get('dataLogDir') ?? null,
  };
  // Since the process began, which is what who waits for it sees; without the build of `npm start`.
  const [built] = performance.getEntriesByName('drover built');
  const readyMs = Math.round(performance.now() - (built?.startTime ?? 0));
  if (asJson) {
    const facts = {
      address: server.address,
      securePort: server.securePort ?? null,
      adminPort: admin?.port ?? null,
      metricsPort: metrics?.port ?? null,
      consolePort: web?.port ?? null,
      ...{ dataDir, dataLogDir, readyMs, pid: process.pid },
      version: droverVersion(),
      zooKeeper: zooKeeperVersion,
    };
    process.stdout.write(`${JSON.stringify(facts)}\n`);
    return;
  }
  const lines = [
    `drover ${droverVersion()}, like ZooKeeper ${zooKeeperVersion}, standalone`,
    `  clients  ${server.address}${server.securePort === server.port ? ' (TLS)' : ''}`,
    ...(server.securePort === undefined || server.securePort === server.port
      ? []
      : [
          `  TLS      ${at(config.get('secureClientPortAddress') ?? server.host, server.securePort)}`,
        ]),
    `  data     ${dataDir ?? 'in memory: nothing is kept'}`,
    ...(dataLogDir === null ? [] : [`  logs     ${dataLogDir}`]),
    ...(admin === undefined
      ? []
      : [`  admin    http://${at(admin.host, admin.port)}${config.must('admin.commandURL')}`]),
    ...(metrics === undefined
      ? []
      : [`  metrics  http://${at(config.must('metricsProvider.httpHost'), metrics.port)}/metrics`]),
    ...(web === undefined ? [] : [`  console  ${web.url}`]),
    `  ready in ${readyMs} ms; Ctrl-C stops (process ${process.pid})`,
  ];
  process.stdout.write(lines.map(line).join(''));
}
