/**
 * A Dubbo URL, and the name of the node that stands for it.
 *
 *   protocol://[user[:password]@]host[:port]/path?key=value&…     parameters sorted by key
 *
 * The whole of it, in Java's form encoding, is the node's name. The values are not escaped before
 * that, so one with `&` or `;` in it would come back as several: such a one is refused, where Dubbo
 * writes it. Text goes in UTF-8.
 */

import { ArgumentError } from '../client/index.ts';

export interface DubboUrl {
  readonly protocol: string;
  readonly username?: string;
  readonly password?: string;
  readonly host: string;
  /** 0 where there is none. */
  readonly port: number;
  /** Without the slash before it: mostly the interface. */
  readonly path: string;
  readonly parameters: Readonly<Record<string, string>>;
}

/** As Java's URLEncoder does it: letters, digits and `.-*_` stay, a space is `+`. */
export function encodeDubbo(text: string): string {
  if (!text.isWellFormed()) throw new ArgumentError('url', 'a lone surrogate cannot be encoded');
  return encodeURIComponent(text)
    .replace(/[!'()~]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+');
}

export function decodeDubbo(name: string): string {
  return decodeURIComponent(name.replaceAll('+', ' '));
}

/** As Dubbo writes it: in full, parameters sorted, values without blanks around them. */
export function formatDubboUrl(url: DubboUrl): string {
  const { protocol, username = '', password = '', host, port, path } = url;
  const user = username === '' ? '' : `${username}${password === '' ? '' : `:${password}`}@`;
  const address = host === '' ? '' : `${host}${port > 0 ? `:${port}` : ''}`;
  const parameters = Object.entries(url.parameters)
    .filter(([key]) => key !== '')
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([key, value]) => `${key}=${trimmed(value)}`)
    .join('&');
  return `${protocol === '' ? '' : `${protocol}://`}${user}${address}${path === '' ? '' : `/${path}`}${
    parameters === '' ? '' : `?${parameters}`
  }`;
}

/** Throws an ArgumentError for what is no such URL. */
export function parseDubboUrl(text: string): DubboUrl {
  const [body = '', ...query] = text.split('?');
  const parameters = parseParameters(query.join('?'));
  const [rest = ''] = body.split('#');
  const scheme = /^([^:/]+):\/\//.exec(rest);
  if (scheme === null) throw new ArgumentError('url', `no protocol in ${shortened(text)}`);
  let address = rest.slice(scheme[0].length);
  const slash = address.indexOf('/');
  const path = slash === -1 ? '' : address.slice(slash + 1);
  if (slash !== -1) address = address.slice(0, slash);
  const at = address.lastIndexOf('@');
  const user = at === -1 ? undefined : address.slice(0, at);
  address = address.slice(at + 1);
  const colon = user?.indexOf(':') ?? -1;
  const { host, port } = parseAddress(address, text);
  return {
    protocol: scheme[1]!,
    ...(user === undefined ? {} : { username: colon === -1 ? user : user.slice(0, colon) }),
    ...(user === undefined || colon === -1 ? {} : { password: user.slice(colon + 1) }),
    host,
    port,
    path,
    parameters,
  };
}

/** The service that the URL is about. */
export function serviceOf({ parameters, path }: DubboUrl): string {
  return parameters.interface || path;
}

/** What it is registered as, or what a subscriber wants to hear of. */
export function categoriesOf({ parameters }: DubboUrl): readonly string[] {
  const category = parameters.category || 'providers';
  return category === '*' ? allCategories : category.split(',').map((one) => one.trim());
}

export const allCategories = ['providers', 'consumers', 'routers', 'configurators'] as const;

/** Whether a subscriber should hear of it: interface, category, group, version, enabled. */
export function isDubboMatch(consumer: DubboUrl, provider: DubboUrl): boolean {
  const [wanted, given] = [consumer.parameters, provider.parameters];
  const services = [serviceOf(consumer), serviceOf(provider)];
  if (!services.includes('*') && services[0] !== services[1]) return false;
  const [category = ''] = categoriesOf(provider);
  if (!categoriesOf(consumer).includes(category)) return false;
  if (given.enabled === 'false' && wanted.enabled !== '*') return false;
  const groups = wanted.group?.split(',').map((one) => one.trim());
  const isOfGroup =
    wanted.group === '*' ||
    wanted.group === given.group ||
    (given.group !== undefined && groups?.includes(given.group) === true);
  const isOfVersion = wanted.version === '*' || wanted.version === given.version;
  const classifier = wanted.classifier ?? '*';
  return (
    isOfGroup && isOfVersion && (classifier === '*' || classifier === (given.classifier ?? '*'))
  );
}

/** The name of its node. Refuses what would not come back as it is. */
export function dubboNodeName(url: DubboUrl): string {
  for (const [key, value] of Object.entries(url.parameters)) {
    if (/[&;=]/.test(key) || /[&;]/.test(value)) {
      const why = 'Dubbo does not escape & and ;, so a reader would take it for several';
      throw new ArgumentError('url', `parameter ${JSON.stringify(key)}: ${why}`);
    }
  }
  if (/[?#]/.test(url.path) || /[?#/]/.test(url.host)) {
    throw new ArgumentError('url', 'host and path cannot hold ? or #');
  }
  return encodeDubbo(formatDubboUrl(url));
}

function parseParameters(query: string): Readonly<Record<string, string>> {
  // Without a prototype, so that no key means more than it says.
  const parameters: Record<string, string> = Object.create(null);
  for (const pair of query.split(/[&;]/)) {
    const [, key, value = ''] = /^=*([^=]+)(?:=(.*))?$/s.exec(pair) ?? [];
    if (key !== undefined) parameters[key] = value;
  }
  // Older providers wrote these.
  for (const [key, value] of Object.entries(parameters)) {
    if (key.startsWith('default.')) parameters[key.slice('default.'.length)] ??= value;
  }
  return parameters;
}

function parseAddress(address: string, text: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':');
  // A colon before a percent sign is part of an IPv6 address with a zone.
  if (colon <= 0 || address.lastIndexOf('%') > colon) return { host: address, port: 0 };
  const port = address.slice(colon + 1);
  if (!/^\d{1,5}$/.test(port)) throw new ArgumentError('url', `no port in ${shortened(text)}`);
  return { host: address.slice(0, colon), port: Number(port) };
}

/** Java's trim: control characters and blanks, and no other white space. */
function trimmed(value: string): string {
  let [from, to] = [0, value.length];
  while (from < to && value.charCodeAt(from) <= 0x20) from += 1;
  while (to > from && value.charCodeAt(to - 1) <= 0x20) to -= 1;
  return value.slice(from, to);
}

function shortened(text: string): string {
  return JSON.stringify(text.slice(0, 200));
}
