/**
 * `/metrics` for Prometheus, with ZooKeeper's own names, as its PrometheusMetricsProvider has them. A
 * latency is there twice: as the summary that Apache has, of the last minutes, and as a histogram (`drover_…_histogram`),
 * which can be added up over servers.
 */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { collectDefaultMetrics, type Metric as PromMetric, Registry } from 'prom-client';
import { type Metric, metricsOf, type ServerFacts } from '../server/index.ts';
import { httpTimeouts, isCrossSite, isOwnHost, limitConnections } from '../support/index.ts';
import { RecentLatencies, stepMs } from './recent-latencies.ts';

export interface MetricsOptions {
  readonly host: string;
  readonly port: number;
  /** Of the process too: `metricsProvider.exportJvmInfo`. */
  readonly processMetrics: boolean;
  /** Names besides `localhost` and IP addresses that a `Host` header may have. */
  readonly allowHosts?: readonly string[] | undefined;
}

export interface MetricsServer {
  readonly port: number;
  close(): Promise<void>;
}

interface Sample {
  readonly value: number;
  readonly labels: Record<string, string | number>;
  readonly metricName?: string;
}

/** What a registry asks of a metric when it is read. */
interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary';
  readonly aggregator: 'sum';
  readonly values: readonly Sample[];
}

/** Those of Apache's summaries. */
const quantiles = [0.5, 0.9, 0.99];

function familiesOf(metrics: readonly Metric[], recent: RecentLatencies): Family[] {
  return metrics.flatMap((metric): Family[] => {
    const { name, about: help, type } = metric;
    const base = { name, help, aggregator: 'sum' } as const;
    if ('byKey' in metric) {
      const values = [...metric.byKey].map(([key, value]) => ({ value, labels: { key } }));
      return [{ ...base, type: metric.type, values }];
    }
    if (type !== 'summary')
      return [{ ...base, type, values: [{ value: metric.value, labels: {} }] }];
    const totals = (of: string): Sample[] => [
      { metricName: `${of}_sum`, value: metric.sum, labels: {} },
      { metricName: `${of}_count`, value: metric.count, labels: {} },
    ];
    const { buckets } = metric;
    if (buckets === undefined) return [{ ...base, type, values: totals(name) }];
    const shown = quantiles.map((part) => ({
      value: recent.quantile(metric, buckets, part),
      labels: { quantile: part },
    }));
    const summary: Family = { ...base, type, values: [...shown, ...totals(name)] };
    const own = `drover_${name}_histogram`;
    const below = buckets.map(([bound, value]) => ({
      metricName: `${own}_bucket`,
      value,
      labels: { le: bound === Infinity ? '+Inf' : bound },
    }));
    const histogram: Family = {
      ...{ name: own, help, type: 'histogram', aggregator: 'sum' },
      values: [...below, ...totals(own)],
    };
    return [summary, histogram];
  });
}

const methods = ['GET', 'HEAD', 'POST'];
/** Who takes nothing of an answer for so long does not get the rest. */
const sendTimeoutMs = 30_000;
const limits = { connectionsMax: 100, connectionsPerAddressMax: 50 };

/** Only these families: what a scrape asks for by `name[]`. */
async function some(registry: Registry, names: ReadonlySet<string>): Promise<string> {
  const parts = ['', '_count', '_sum', '_bucket'];
  const families = registry
    .getMetricsAsArray()
    .filter(({ name }) => parts.some((part) => names.has(`${name}${part}`)));
  const texts = families.map(({ name }) => registry.getSingleMetricAsString(name));
  return `${(await Promise.all(texts)).join('\n\n')}\n`;
}

export async function startMetrics(
  facts: ServerFacts,
  { host, port, processMetrics, allowHosts = [] }: MetricsOptions,
): Promise<MetricsServer> {
  const registry = new Registry();
  if (processMetrics) collectDefaultMetrics({ register: registry });
  const recent = new RecentLatencies();
  const step = () => {
    recent.mark(metricsOf(facts));
    timer = facts.clock.after(stepMs, step, true);
  };
  let timer = facts.clock.after(stepMs, step, true);
  for (const { name } of familiesOf(metricsOf(facts), recent)) {
    const family = { name, get: () => latest.get(name) };
    registry.registerMetric(family as unknown as PromMetric);
  }
  let latest = new Map<string, Family>();
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    response.setTimeout(sendTimeoutMs);
    const { url: asked = '/' } = request;
    const base = 'http://metrics';
    const url = URL.canParse(asked, base) ? new URL(asked, base) : new URL(base);
    if (!isOwnHost(request.headers.host, allowHosts)) {
      const why = 'this server does not answer to that name; add it to drover.allowHosts\n';
      response.writeHead(421).end(why);
    } else if (isCrossSite(request)) {
      response.writeHead(403).end('not across sites\n');
    } else if (url.pathname !== '/metrics') {
      response.writeHead(404).end('not found; /metrics is here\n');
    } else if (!methods.includes(request.method ?? '')) {
      response.writeHead(405, { allow: methods.join(', ') }).end();
    } else {
      latest = new Map(familiesOf(metricsOf(facts), recent).map((family) => [family.name, family]));
      const names = new Set(url.searchParams.getAll('name[]'));
      const text = await (names.size === 0 ? registry.metrics() : some(registry, names));
      response.writeHead(200, { 'content-type': registry.contentType }).end(text);
    }
  };
  const server = createServer(httpTimeouts, (request, response) => {
    // What can't be told must not end what serves.
    serve(request, response).catch(() => response.destroy());
  });
  limitConnections(server, limits);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        timer.cancel();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
