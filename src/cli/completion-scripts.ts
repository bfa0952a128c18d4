/**
 * Completion for bash, zsh and fish: short scripts that hand the line to `drover complete` and take what
 * it prints, `value<TAB>about` a line. What was typed is passed on as it is and never evaluated.
 *
 * What is offered becomes part of a command line, and anyone who can create a node chooses its name. A
 * name that means something to a shell, such as `$(reboot)`, is therefore never offered.
 */

import type { Client } from '../client/index.ts';
import type { Context } from './command.ts';
import { complete } from './completion.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { escaped } from './output.ts';
import { targetOf } from './target.ts';
import { tokens } from './tokens.ts';

const bash = `_drover() {
  local line="\${COMP_LINE:0:COMP_POINT}" value
  COMPREPLY=()
  while IFS= read -r value; do
    COMPREPLY+=("$value")
  done < <(drover complete -- "\${line#* }" 2>/dev/null | cut -f1)
  # Bash replaces what stands behind the last colon or equals sign alone.
  local word="\${line##*[[:space:]]}" kept
  kept="\${word%"\${word##*[:=]}"}"
  if [[ -n "$kept" ]]; then COMPREPLY=("\${COMPREPLY[@]#"$kept"}"); fi
}
complete -o nospace -o default -F _drover drover
`;

const zsh = `#compdef drover
_drover() {
  local -a values abouts
  local value about
  while IFS=$'\\t' read -r value about; do
    values+=("$value")
    abouts+=("$value\${about:+  -- $about}")
  done < <(drover complete -- "\${LBUFFER#* }" 2>/dev/null)
  (( \${#values} )) && compadd -U -S '' -l -d abouts -a values
}
compdef _drover drover
`;

const fish = `function __drover_complete
  set -l line (commandline -cp | string replace -r '^\\S+\\s' '')
  drover complete -- "$line" 2>/dev/null
end
complete -c drover -f -a '(__drover_complete)'
`;

const scripts: Readonly<Record<string, string>> = { bash, zsh, fish };

export async function completion(
  { output }: Context,
  [shell = '']: readonly string[],
): Promise<number> {
  if (!Object.hasOwn(scripts, shell)) {
    const all = Object.keys(scripts).join(', ');
    throw new CommandError('usage', `${escaped(shell)}: there are scripts for ${all}`);
  }
  if (output.isJson) output.record({ shell, script: scripts[shell] });
  else output.write(scripts[shell]!);
  return exitCodes.ok;
}

/** Letters, digits and what neither bash nor zsh nor fish reads as anything but itself. */
const plainToShells = /^[\p{L}\p{M}\p{N}._/:@%+,=-]+$/u;

export async function completeLine(
  context: Context,
  [line = '']: readonly string[],
): Promise<number> {
  const { commands, output, environment } = context;
  const opened: Client[] = [];
  const client = async (): Promise<Client | null> => {
    const [server, saved] = [valueIn(line, '--server', '-server'), valueIn(line, '--context')];
    if (server === undefined && saved === undefined) return context.client().catch(() => null);
    const options = { ...(server && { server }), ...(saved && { context: saved }) };
    // By the rules of the line itself: a server that is named there is shown no context's credentials.
    const target = targetOf(options, environment);
    const other = await target.then(context.connectTo).catch(() => null);
    if (other !== null) opened.push(other);
    return other;
  };
  const contexts = async () => (await import('./contexts.ts')).contextNames(environment);
  const { candidates } = await complete(line, { commands, cwd: '/', client, contexts });
  await Promise.all(opened.map((each) => each.close()));
  for (const { value, about } of candidates) {
    if (!plainToShells.test(value)) continue;
    if (output.isJson) output.record({ value, about });
    else output.line(`${value}\t${about}`);
  }
  return exitCodes.ok;
}

/** What the line itself says of where it goes. */
function valueIn(line: string, ...flags: readonly string[]): string | undefined {
  const words = tokens(line);
  const at = words.findIndex((word) => flags.includes(word));
  return at === -1 ? undefined : words[at + 1];
}
