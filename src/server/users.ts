/**
 * Who may authenticate by SASL, from a file: a JAAS file as Apache has it, or a list of our own.
 *
 *   Server {
 *     org.apache.zookeeper.server.auth.DigestLoginModule required
 *     user_ann="secret"
 *     user_bob="other";
 *   };
 *
 *   # name: password
 *   ann: secret
 */

import { ConfigError } from './config.ts';
import { parseJaas } from './jaas.ts';

export type Users = ReadonlyMap<string, string>;

const userPrefix = 'user_';

/** The users of one section. `file` is for messages, which never show what is in it. */
export function readJaas(text: string, file: string, section = 'Server'): Users {
  const modules = parseJaas(text, file).get(section);
  if (modules === undefined) throw new ConfigError(`${file} has no ${section} section`);
  const module = modules[0]?.className;
  if (module === undefined || !module.endsWith('DigestLoginModule')) {
    const found = module ?? 'none';
    throw new ConfigError(
      `${file}: the ${section} section has the login module ${found}; only DigestLoginModule is known here`,
    );
  }
  const users = new Map<string, string>();
  for (const { options } of modules) {
    for (const [key, value] of options) {
      if (key.startsWith(userPrefix)) users.set(key.slice(userPrefix.length), value);
    }
  }
  return users;
}

export function readUsers(text: string, file: string): Users {
  const users = new Map<string, string>();
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    if (/^\s*(#|$)/.test(line)) continue;
    const match = /^\s*([^:\s]+)\s*:\s*(\S.*?)\s*$/.exec(line);
    if (match === null) throw new ConfigError(`${file} line ${i + 1}: name: password is wanted`);
    users.set(match[1]!, match[2]!);
  }
  return users;
}
