/**
 * docs/commands.md, out of the table of commands. `test/cli-table.test.ts` holds the page against it;
 * `npx vitest run --project unit test/cli-table.test.ts -u` writes it anew.
 */

import { type CommandTable, groups } from '../src/cli/command.ts';
import { nameOf } from '../src/cli/parse.ts';
import { connectionOptions } from '../src/cli/target.ts';

const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');

const intro = `# Commands

Every command works in three ways: by itself, \`drover ls /\`; as a line of \`drover shell\`; and as a line of a script on standard input, \`drover shell < script\`. What is written the way zkCli has it means what it means there: all commands of ZooKeeper 3.9's zkCli are here with their flags, and the older spellings (\`ls2\`, \`rmr\`, \`get path watch\`, \`set path data version\`).

This page is made from the table that the commands themselves are read from. \`drover help COMMAND\` prints the same.

## Output

- Results are on standard output, everything else on standard error.
- \`--json\` works with every command: an object a line. Data is \`{"text": …}\` where it is UTF-8 and \`{"hex": …}\` where it is not, zxids and sessions are hex, times are ISO 8601. Errors are then an object on standard error: \`{"error": {"code", "message", "path"}}\`.
- An error of drover's own is one sentence, too. \`--debug\` adds where it comes from.
- Into a pipe or a file, \`get\` writes the very bytes of the node and \`ls\` a name a line. On a terminal and in a shell both look as they do in zkCli.
- Names and data may come from strangers: control, bidi and invisible characters are printed as \`\\u202e\`, and a backslash as \`\\\\\`. \`--json\` has the names as they are.
- \`NO_COLOR\` and \`FORCE_COLOR\` are obeyed. A reader that goes away (\`drover find / | head\`) ends the command quietly.

## Deleting

\`deleteall\` (and \`setAcl -R\`) say how many nodes they are about and ask, where there is somebody to ask: standard input and standard error are a terminal. \`--yes\` answers beforehand. Where nobody can answer, in a script or a pipe, they do what they are told, as zkCli does; \`--dry-run\` only counts. Ctrl-C stops between two batches and says how many nodes are gone.

## Exit codes

| Code | Means |
| --- | --- |
| 0 | done |
| 1 | \`diff\` and the file tools found a difference or damage, \`grep\` found nothing, \`align run\` left records out; or a bug of ours |
| 2 | the command line or the configuration is wrong; nothing was done |
| 3 | \`serve\`: the address is taken, or not ours |
| 4 | the data directory, or another file or folder here: not there, not writable, not ours, in use, damaged |
| 5 | \`serve\` had to stop by itself: it could not write its log |
| 6 | the server said no (no such node, another version, not permitted); nothing was changed |
| 7 | no server could be reached, or none would have us |
| 8 | the link broke before the reply: a write may or may not have happened |
| 9 | somebody was asked, and said no |
| 10 | standard output could not be written |
| 130 | Ctrl-C |

A script ends with the code of its last line; with \`--stop-on-error\`, at the first line that fails.

## Where and who

These stand before or behind any command that talks to a server. zkCli's \`-server\`, \`-timeout\`, \`-client-configuration\` and \`-r\` are understood too. Without any of them: \`DROVER_SERVER\`, then the selected context, then 127.0.0.1:2181.

`;

export function commandsPage(table: CommandTable): string {
  const options = (list: readonly { flags: string; about: string }[]) =>
    list.length === 0
      ? ''
      : `\n| Option | |\n| --- | --- |\n${list
          .map(({ flags, about }) => `| \`${flags.replaceAll('|', '\\|')}\` | ${cell(about)} |`)
          .join('\n')}\n`;
  const sections = Object.entries(groups).map(([group, title]) => {
    const entries = Object.values(table).filter((command) => command.group === group);
    if (entries.length === 0) return '';
    const texts = entries.map((command) => {
      const { usage, about, aliases, only, writes } = command;
      const remarks = [
        aliases === undefined ? '' : `Also \`${aliases.join('`, `')}\`.`,
        only === 'shell' ? 'In a shell alone.' : '',
        only === 'argv' ? 'By itself alone.' : '',
        writes ? 'Refused where the context is read-only.' : '',
      ].filter(Boolean);
      const tail = remarks.length > 0 ? ` ${remarks.join(' ')}` : '';
      return `### ${nameOf(command)}\n\n\`drover ${usage}\` ${cell(about)}.${tail}\n${options(command.options)}`;
    });
    return `## ${title}\n\n${texts.join('\n')}`;
  });
  const variables = `
| Variable | |
| --- | --- |
| \`DROVER_SERVER\` | as \`--server\` |
| \`DROVER_CONTEXT\` | as \`--context\` |
| \`DROVER_AUTH\` | as \`--auth\`, one a line |
| \`DROVER_SASL_USER\`, \`DROVER_SASL_PASSWORD\` | SASL DIGEST-MD5 |
| \`DROVER_HISTORY\` | where the shell keeps its history; empty, nowhere |
| \`DROVER_JOURNAL\` | where commands note what they wrote, for the console's audit; empty, nowhere |
| \`VISUAL\`, \`EDITOR\` | what \`edit\` opens |
`;
  const text = `${intro}${options(connectionOptions).trimStart()}${variables}\n${sections.filter(Boolean).join('\n')}`;
  return `${text.trimEnd()}\n`;
}
