/**
 * Where an instance is reached, as a pattern with fields: `{scheme}://{address}:{port}/api`.
 *
 * In: the text of a pattern, or its parts as Curator writes them. Out: the text for one instance. A
 * field that nobody knows is left out, as Curator does; `{[}` and `{]}` are braces.
 */

import { ArgumentError } from '../client/index.ts';
import type { ServiceInstance } from './discovery-instance.ts';

export interface UriPart {
  readonly value: string;
  /** A field to be filled in, and not text. */
  readonly variable: boolean;
}

export interface UriSpec {
  readonly parts: readonly UriPart[];
}

export function parseUriSpec(text: string): UriSpec {
  if (typeof text !== 'string') throw new ArgumentError('uriSpec', 'text is wanted');
  const parts: UriPart[] = [];
  let isInside = false;
  for (const token of text.split(/([{}])/)) {
    if (token === '{' || token === '}') {
      if ((token === '{') === isInside) {
        const why = token === '{' ? 'a { within a field' : 'a } without its {';
        throw new ArgumentError('uriSpec', `${why}; {[} and {]} stand for braces`);
      }
      isInside = token === '{';
    } else if (token !== '') {
      parts.push({ value: isInside ? token.trim() : token, variable: isInside });
    }
  }
  if (isInside) throw new ArgumentError('uriSpec', 'the last { has no }');
  return { parts };
}

type Fields = Readonly<Record<string, string | number>>;

/** `fields` go before the instance's own. */
export function buildUri(
  { parts }: UriSpec,
  instance: ServiceInstance | null = null,
  fields: Fields = {},
): string {
  const all = new Map<string, string>([
    ['[', '{'],
    [']', '}'],
    ['scheme', 'http'],
  ]);
  if (instance !== null) {
    all.set('scheme', instance.sslPort === null ? 'http' : 'https');
    all.set('name', instance.name);
    all.set('id', instance.id);
    all.set('address', instance.address ?? '');
    all.set('port', String(instance.port ?? ''));
    all.set('ssl-port', String(instance.sslPort ?? ''));
    all.set('registration-time-utc', String(instance.registrationTimeUTC));
    all.set('service-type', instance.serviceType.toLowerCase());
  }
  for (const [name, value] of Object.entries(fields)) all.set(name, String(value));
  return parts.map(({ value, variable }) => (variable ? (all.get(value) ?? '') : value)).join('');
}
