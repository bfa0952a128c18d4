/** Which lines of a shell hold a password, and must not be kept on disk. */

import { tokens } from './tokens.ts';

/**
 * Decided by the words as the shell itself reads them: quotes and case hide nothing. A flag that is not
 * quite right counts too, since the password behind it is.
 */
export function holdsSecret(line: string): boolean {
  const words = tokens(line).map((word) => word.toLowerCase());
  return words[0] === 'addauth' || words.some(isSecretFlag);
}

function isSecretFlag(word: string): boolean {
  if (!word.startsWith('-')) return false;
  const [flag = ''] = word.split('=', 1);
  return /auth|sasl|pass|secret|token/.test(flag) || isAbbreviation(flag);
}

/** `--au` and `--aut`, with one dash or two. */
function isAbbreviation(flag: string): boolean {
  const name = flag.replace(/^-+/, '');
  return name.length >= 2 && 'auth'.startsWith(name);
}
