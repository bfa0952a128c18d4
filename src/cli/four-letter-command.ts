/** `drover 4lw WORD [--all]`: a four-letter word to one server, or to all of them at once. */

import type { Context, OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { type Answer, askAll, isNotWhitelisted, readValues, serversOf } from './four-letter.ts';
import { escaped } from './output.ts';

/** Words that set something back. */
const changing: readonly string[] = ['crst', 'srst', 'stmk'];
/** Words whose answer is a list of names and values. */
const tables: readonly string[] = ['conf', 'dirs', 'envi', 'mntr', 'srvr'];

export async function fourLetter(
  context: Context,
  [word = '']: readonly string[],
  options: OptionValues,
): Promise<number> {
  if (!/^[a-z]{4}$/.test(word)) {
    throw new CommandError(
      'usage',
      `${escaped(word)}: a word of four letters is wanted, such as ruok, srvr, mntr, conf, cons, wchs`,
    );
  }
  const { signal } = context;
  const target = await context.target();
  if (changing.includes(word) && target.readOnly) {
    throw new CommandError(
      'refused',
      `${word} sets counters back, and ${target.origin} is read-only`,
    );
  }
  const servers = serversOf(target);
  const asked = { signal, tls: target.client.tls };
  let answers: Answer[];
  if (options.all === true) answers = await askAll(servers, word, asked);
  else {
    answers = [];
    // The first that answers.
    for (const server of servers) {
      answers = await askAll([server], word, asked);
      if ('text' in answers[0]!) break;
    }
  }
  for (const answer of answers) say(context, word, answer, answers.length > 1);
  const isFine = answers.every(
    (each) => 'text' in each && each.text !== '' && !isNotWhitelisted(each.text),
  );
  return isFine ? exitCodes.ok : exitCodes.unreachable;
}

function say({ output }: Context, word: string, answer: Answer, isOneOfMany: boolean): void {
  const { server } = answer;
  if (output.isJson) {
    const values =
      'text' in answer && tables.includes(word) ? { values: readValues(answer.text) } : {};
    output.record({ ...answer, server: server.name, word, ...values });
    return;
  }
  if (isOneOfMany) output.line(`── ${escaped(server.name)}`);
  if ('error' in answer) {
    output.tell(`${escaped(server.name)}: ${escaped(answer.error)}`);
    return;
  }
  if (answer.text === '') {
    // A word that a server does not know is the length of a frame to it, and one that it does not take.
    output.tell(`${escaped(server.name)}: hung up without an answer; it may not know ${word}`);
    return;
  }
  for (const line of answer.text.replace(/\n$/, '').split('\n')) output.line(harmless(line));
}

/** Tabs are part of the answer. */
function harmless(line: string): string {
  return line.split('\t').map(escaped).join('\t');
}
