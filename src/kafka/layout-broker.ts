/**
 * What a broker says of itself in /brokers/ids/[id], in all forms there ever were.
 *
 *   0.7   creator:host:port             creator = host-startMillis
 *   v1    host, port, jmx_port, timestamp                     0.8
 *   v2    and endpoints                                       0.9
 *   v3    and rack                                            0.10.0
 *   v4    and listener_security_protocol_map                  0.10.2
 *   v5    and features                                        2.7
 *
 * In: any of them. Out: one shape, with at least one endpoint. `host` and `port` are those of the
 * first PLAINTEXT listener, for readers older than endpoints; without one they are null and -1.
 */

import type { Content } from './layout.ts';
import {
  intOf,
  isObject,
  type JsonObject,
  parseObject,
  textOf,
  timestampOf,
  toInt,
  toJson,
} from './layout-fields.ts';

export interface Endpoint {
  /** The listener's name: PLAINTEXT, SSL, or one of the operator's own. */
  readonly listener: string;
  readonly protocol: string;
  /** Null where the broker listens on every address and advertises none. */
  readonly host: string | null;
  readonly port: number;
}

export interface BrokerRegistration {
  readonly version: number;
  readonly endpoints: readonly Endpoint[];
  readonly host: string | null;
  readonly port: number;
  readonly jmxPort: number;
  readonly timestampMs: number | null;
  readonly rack: string | null;
  readonly features: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

export const brokerVersionNewest = 5;

export const brokerContent: Content<BrokerRegistration> = {
  schema:
    '{"version":5,"host":"h","port":9092,"endpoints":["PLAINTEXT://h:9092"],"jmx_port":-1,"timestamp":"ms","rack":"r","listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"features":{}}',
  parse(text) {
    const json = parseObject(text);
    const version = intOf(json, 'version', 1);
    if (version < 1) throw new Error(`version: ${version} is none that Kafka has written`);
    const host = textOf(json, 'host');
    const port = intOf(json, 'port', -1);
    const endpoints = endpointsOf(json, host, port);
    if (endpoints.length === 0) throw new Error('neither endpoints nor host and port');
    return {
      version,
      endpoints,
      host,
      port,
      jmxPort: intOf(json, 'jmx_port', -1),
      timestampMs: timestampOf(json),
      rack: textOf(json, 'rack'),
      features: featuresOf(json),
    };
  },
  format(broker, version = brokerVersionNewest) {
    const { host, port } = plainAddress(broker);
    const protocols = broker.endpoints.map(({ listener, protocol }) => [listener, protocol]);
    const fields = {
      version,
      host,
      port,
      endpoints: broker.endpoints.map(formatEndpoint),
      jmx_port: broker.jmxPort,
      timestamp: String(broker.timestampMs ?? 0),
      rack: broker.rack,
      listener_security_protocol_map: Object.fromEntries(protocols),
      features: broker.features,
    };
    const order = fieldOrder[version as keyof typeof fieldOrder];
    if (order === undefined) throw new Error(`version: 1 to 5 can be written, not ${version}`);
    const isThere = (name: keyof typeof fields) => name !== 'rack' || broker.rack !== null;
    return toJson(Object.fromEntries(order.filter(isThere).map((name) => [name, fields[name]])));
  },
};

/**
 * Java's order of fields is that of Scala's hash maps, so it changed with the fields, with the kind of
 * map and with Scala: here as the releases wrote it that had the version as their newest.
 */
// biome-ignore format: a table is read down its columns
const fieldOrder = {
  1: ['jmx_port', 'timestamp', 'host', 'version', 'port'],
  2: ['jmx_port', 'timestamp', 'endpoints', 'host', 'version', 'port'],
  3: ['jmx_port', 'timestamp', 'endpoints', 'host', 'version', 'port', 'rack'],
  4: ['listener_security_protocol_map', 'endpoints', 'rack', 'jmx_port', 'host', 'timestamp', 'port', 'version'],
  5: ['features', 'listener_security_protocol_map', 'endpoints', 'rack', 'jmx_port', 'port', 'host', 'version', 'timestamp'],
} as const;

/** 0.7: three parts between colons. The first says who made it and when. */
export const brokerContent07: Content<BrokerRegistration> = {
  schema: 'host-startMillis:host:port',
  parse(text) {
    const parts = (text ?? '').split(':');
    // The documents write host:port alone; the code always wrote the creator before it.
    if (parts.length !== 3 && parts.length !== 2) throw new Error('creator:host:port is wanted');
    const [host, port] = parts.slice(-2) as [string, string];
    const started = parts.length === 3 ? /-(\d+)$/.exec(parts[0]!)?.[1] : undefined;
    const at = { host, port: toInt(port, 'port') };
    return {
      version: 0,
      endpoints: [{ listener: 'PLAINTEXT', protocol: 'PLAINTEXT', ...at }],
      ...at,
      jmxPort: -1,
      timestampMs: started === undefined ? null : Number(started),
      rack: null,
      features: {},
    };
  },
  format(broker) {
    const { host, port } = plainAddress(broker);
    if (host === null)
      throw new Error('0.7 knows plain listeners alone: a PLAINTEXT one is wanted');
    return `${host}-${broker.timestampMs ?? 0}:${host}:${port}`;
  },
};

/** Whether a broker's node has the form of 0.7. What has neither form is not called so. */
export function isBroker07(data: Uint8Array | null): boolean {
  return data !== null && /^[^{:]+(:[^:]+)?:\d+\s*$/.test(Buffer.from(data).toString('utf8'));
}

const endpointPattern = /^(.*):\/\/(?:\[([0-9a-zA-Z%.:]*)\]|([0-9a-zA-Z\-%._]*)):(-?\d+)$/;

export function parseEndpoint(text: string, protocols: JsonObject = {}): Endpoint {
  const found = endpointPattern.exec(text.trim());
  if (found === null) throw new Error(`endpoints: "${text}" is not listener://host:port`);
  const listener = found[1]!;
  const host = found[2] ?? found[3] ?? '';
  const mapped = protocols[listener] ?? protocols[listener.toUpperCase()];
  return {
    listener,
    protocol: typeof mapped === 'string' ? mapped : listener,
    host: host === '' ? null : host,
    port: Number(found[4]),
  };
}

export function formatEndpoint({ listener, host, port }: Endpoint): string {
  const name = host ?? '';
  return `${listener}://${name.includes(':') ? `[${name}]` : name}:${port}`;
}

function endpointsOf(json: JsonObject, host: string | null, port: number): Endpoint[] {
  const list = json.endpoints;
  if (Array.isArray(list) && list.length > 0) {
    const map = json.listener_security_protocol_map;
    return list.map((one) => parseEndpoint(String(one), isObject(map) ? map : {}));
  }
  if (host === null) return [];
  return [{ listener: 'PLAINTEXT', protocol: 'PLAINTEXT', host, port }];
}

function plainAddress(broker: BrokerRegistration): { host: string | null; port: number } {
  const plain = broker.endpoints.find(({ protocol }) => protocol === 'PLAINTEXT');
  return plain ? { host: plain.host, port: plain.port } : { host: null, port: -1 };
}

function featuresOf(json: JsonObject): BrokerRegistration['features'] {
  if (!isObject(json.features)) return {};
  const all = Object.entries(json.features).filter(([, levels]) => isObject(levels));
  return Object.fromEntries(all) as BrokerRegistration['features'];
}
