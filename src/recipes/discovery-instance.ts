/**
 * An instance of a service, and the JSON in which Curator's x-discovery keeps it.
 *
 *   {"name":…,"id":…,"address":…,"port":…,"sslPort":…,"payload":…,"registrationTimeUTC":…,
 *    "serviceType":…,"uriSpec":…}                                       and, only where asked: "enabled"
 *
 * Written in this order and with every field, as Jackson does. Read as Curator reads it: unknown
 * fields are ignored, missing ones have Curator's defaults. A payload goes as it is: for a Java reader
 * with a class of its own, give it an `@class`; without one it is a map there. What is neither an
 * object nor text, a 32-bit number or a truth value stands there as a pair of class and value: such
 * pairs are taken apart here, and a list goes out as one.
 */

import { randomUUID } from 'node:crypto';
import { networkInterfaces } from 'node:os';
import { ArgumentError } from '../client/index.ts';
import { checkNodeName } from './cache-arguments.ts';
import { formatJson, JsonError, parseJson } from './config-json.ts';
import { parseUriSpec, type UriPart, type UriSpec } from './discovery-uri-spec.ts';

export const serviceTypes = ['DYNAMIC', 'STATIC', 'PERMANENT', 'DYNAMIC_SEQUENTIAL'] as const;
/** The first and the last live as long as their session; the others until they are unregistered. */
export type ServiceType = (typeof serviceTypes)[number];

export interface ServiceInstance<P = unknown> {
  /** Of the service. */
  readonly name: string;
  /** Of the instance: the name of its node. */
  readonly id: string;
  readonly address: string | null;
  readonly port: number | null;
  readonly sslPort: number | null;
  readonly payload: P | null;
  /** Milliseconds since 1970. */
  readonly registrationTimeUTC: number;
  readonly serviceType: ServiceType;
  readonly uriSpec: UriSpec | null;
  readonly enabled: boolean;
}

export interface InstanceInput<P = unknown> {
  readonly name: string;
  /** A random UUID unless said. */
  readonly id?: string;
  /** The first address of this machine that others can reach, unless said. */
  readonly address?: string | null;
  readonly port?: number | null;
  readonly sslPort?: number | null;
  readonly payload?: P | null;
  /** Now, unless said. */
  readonly registrationTimeUTC?: number;
  /** `DYNAMIC` unless said. */
  readonly serviceType?: ServiceType;
  /** As text, `{scheme}://{address}:{port}`, or in parts. */
  readonly uriSpec?: string | UriSpec | null;
  readonly enabled?: boolean;
}

/** Fills in what was left out, and refuses what no node can hold. */
export function serviceInstance<P>(
  input: InstanceInput<P>,
  nowMs = Date.now(),
): ServiceInstance<P> {
  const { uriSpec = null } = input;
  const instance: ServiceInstance<P> = {
    name: input.name,
    id: input.id ?? randomUUID(),
    address: input.address === undefined ? firstAddress() : input.address,
    port: input.port ?? null,
    sslPort: input.sslPort ?? null,
    payload: input.payload ?? null,
    registrationTimeUTC: input.registrationTimeUTC ?? nowMs,
    serviceType: input.serviceType ?? 'DYNAMIC',
    uriSpec: typeof uriSpec === 'string' ? parseUriSpec(uriSpec) : uriSpec,
    enabled: input.enabled ?? true,
  };
  checkNodeName('name', instance.name);
  checkNodeName('id', instance.id);
  for (const field of ['port', 'sslPort'] as const) {
    const port = instance[field];
    if (port !== null && !(Number.isInteger(port) && port >= 0 && port <= 65_535)) {
      throw new ArgumentError(field, 'null or 0 to 65535 is wanted');
    }
  }
  if (instance.address !== null && typeof instance.address !== 'string') {
    throw new ArgumentError('address', 'null or text is wanted');
  }
  if (!Number.isSafeInteger(instance.registrationTimeUTC)) {
    throw new ArgumentError('registrationTimeUTC', 'milliseconds since 1970 are wanted');
  }
  if (!serviceTypes.includes(instance.serviceType)) {
    throw new ArgumentError('serviceType', `one of ${serviceTypes.join(', ')} is wanted`);
  }
  return instance;
}

const listClass = 'java.util.ArrayList';

export interface FormatOptions {
  /** Older readers refuse an instance with a field that they do not know (CURATOR-275). */
  readonly writeEnabled?: boolean;
}

export function formatInstance(
  instance: ServiceInstance,
  { writeEnabled = false }: FormatOptions = {},
): string {
  const { name, id, address, port, sslPort, payload, registrationTimeUTC } = instance;
  const { serviceType, uriSpec, enabled } = instance;
  const parts = uriSpec?.parts.map(({ value, variable }) => ({ value, variable }));
  const fields = {
    ...{ name, id, address, port, sslPort },
    payload: Array.isArray(payload) ? [listClass, payload] : payload,
    ...{ registrationTimeUTC, serviceType },
    uriSpec: parts === undefined ? null : { parts },
    ...(writeEnabled ? { enabled } : {}),
  };
  return formatJson(fields, `instance ${name}/${id}`);
}

/** Throws a JsonError that says which field is wrong. */
export function parseInstance(data: Uint8Array | null, what = 'instance'): ServiceInstance {
  const fields = parseJson(data, what);
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) {
    throw new JsonError(`${what}: an object is wanted`);
  }
  const read = new Fields(fields as Record<string, unknown>, what);
  return {
    name: read.text('name') ?? '',
    id: read.text('id') ?? '',
    address: read.text('address'),
    port: read.integer('port'),
    sslPort: read.integer('sslPort'),
    payload: read.payload(),
    registrationTimeUTC: read.integer('registrationTimeUTC') ?? 0,
    serviceType: read.serviceType(),
    uriSpec: read.uriSpec(),
    enabled: read.enabled(),
  };
}

class Fields {
  readonly #fields: Record<string, unknown>;
  readonly #what: string;

  constructor(fields: Record<string, unknown>, what: string) {
    this.#fields = fields;
    this.#what = what;
  }

  of(name: string): unknown {
    return Object.hasOwn(this.#fields, name) ? this.#fields[name] : undefined;
  }

  #wrong(name: string, wanted: string): JsonError {
    return new JsonError(`${this.#what}: ${name}: ${wanted} is wanted`);
  }

  text(name: string): string | null {
    const value = this.of(name) ?? null;
    if (value === null || typeof value === 'string') return value;
    throw this.#wrong(name, 'text');
  }

  integer(name: string): number | null {
    const value = this.of(name) ?? null;
    // Jackson takes a number in quotes for a number.
    const number = typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
    if (number === null || Number.isSafeInteger(number)) return number as number | null;
    throw this.#wrong(name, 'an integer');
  }

  payload(): unknown {
    const payload = this.of('payload') ?? null;
    const isPair = Array.isArray(payload) && payload.length === 2 && typeof payload[0] === 'string';
    return isPair ? payload[1] : payload;
  }

  serviceType(): ServiceType {
    const value = this.of('serviceType') ?? 'DYNAMIC';
    if (serviceTypes.includes(value as ServiceType)) return value as ServiceType;
    throw this.#wrong('serviceType', `one of ${serviceTypes.join(', ')}`);
  }

  enabled(): boolean {
    const value = this.of('enabled');
    if (value === undefined) return true;
    if (value === null) return false; // Java's default for a boolean
    if (typeof value === 'boolean') return value;
    throw this.#wrong('enabled', 'true or false');
  }

  uriSpec(): UriSpec | null {
    const value = this.of('uriSpec') ?? null;
    if (value === null) return null;
    const parts = (value as { parts?: unknown }).parts ?? [];
    if (!Array.isArray(parts)) throw this.#wrong('uriSpec.parts', 'a list');
    return { parts: parts.map((part) => this.#part(part)) };
  }

  #part(part: unknown): UriPart {
    const { value = '', variable = false } = (part ?? {}) as Partial<UriPart>;
    if (typeof value !== 'string' || typeof variable !== 'boolean') {
      throw this.#wrong('uriSpec.parts', 'a value and variable in each');
    }
    return { value, variable };
  }
}

function firstAddress(): string | null {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const outer = all.filter(({ internal }) => !internal);
  return (outer.find(({ family }) => family === 'IPv4') ?? outer[0])?.address ?? null;
}
