/**
 * `host:port,host:port/chroot`, as every ZooKeeper client takes it.
 *
 * A host is a name, an IPv4 address, or an IPv6 address in brackets (bare where it stands without a
 * port). The port is 2181 unless said. The chroot is a path that all others stand below.
 */

import net from 'node:net';
import { pathFault } from '../protocol/index.ts';
import { ArgumentError } from '../support/index.ts';

export interface Host {
  readonly name: string;
  readonly port: number;
}

export interface Servers {
  readonly hosts: readonly Host[];
  /** '' for none, else an absolute path without a slash at its end. */
  readonly chroot: string;
}

export const defaultPort = 2181;

export function parseServers(text: string): Servers {
  if (typeof text !== 'string') {
    throw new ArgumentError(
      'servers',
      `a string such as 'host:2181,host:2181/app' is wanted, not ${typeof text}`,
    );
  }
  const slash = text.indexOf('/');
  const list = slash === -1 ? text : text.slice(0, slash);
  const path = slash === -1 ? '/' : text.slice(slash);
  const fault = pathFault(path);
  if (fault !== null)
    throw new ArgumentError('servers', `the chroot ${path} is not a path: ${fault}`);
  const hosts = list
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map(parseHost);
  if (hosts.length === 0) throw new ArgumentError('servers', 'no host is named');
  return { hosts, chroot: path === '/' ? '' : path };
}

function parseHost(text: string): Host {
  const bracketed = /^\[([^\]]+)\](?::(.*))?$/.exec(text);
  if (bracketed) {
    if (!net.isIPv6(bracketed[1]!)) throw noHost(text);
    return { name: bracketed[1]!, port: parsePort(bracketed[2], text) };
  }
  const [name, port, ...more] = text.split(':');
  if (more.length > 0 && net.isIPv6(text)) return { name: text, port: defaultPort };
  if (!name) throw new ArgumentError('servers', `"${text}" names no host`);
  if (more.length > 0 || /[\s[\]]/.test(name)) throw noHost(text);
  return { name, port: parsePort(port, text) };
}

function noHost(text: string): ArgumentError {
  return new ArgumentError(
    'servers',
    `"${text}" is neither host:port nor an IPv6 address, in brackets where a port follows`,
  );
}

function parsePort(text: string | undefined, host: string): number {
  if (text === undefined) return defaultPort;
  const port = Number(text);
  if (!/^\d+$/.test(text) || port < 1 || port > 65_535) {
    throw new ArgumentError('servers', `"${host}" has no port between 1 and 65535`);
  }
  return port;
}

export function hostText({ name, port }: Host): string {
  return name.includes(':') ? `[${name}]:${port}` : `${name}:${port}`;
}
