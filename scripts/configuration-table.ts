/** Writes the tables of docs/configuration.md and docs/server.md anew: `npx tsx scripts/configuration-table.ts`. */
import { readFileSync, writeFileSync } from 'node:fs';
import {
  type AppliedKey,
  appliedKeys,
  defaultLimits,
  inertKeys,
  type LimitName,
  limitDefaultText,
  refusedKeys,
  variableOf,
} from '../src/server/index.ts';

const cell = (text: string) => text.replaceAll('|', '\\|');

const limitNames = Object.keys(defaultLimits) as LimitName[];
const limitKeys = new Map(limitNames.map((name) => [`drover.limits.${name}`, name]));
const defaultOf = (key: string, standard: string | undefined) => {
  const limit = limitKeys.get(key);
  return limit === undefined ? standard : limitDefaultText(limit);
};

const applied = Object.entries(appliedKeys as Record<string, AppliedKey>).map(
  ([key, { kind, default: standard, about }]) =>
    `| \`${key}\` | ${kind} | ${standard ? `\`${defaultOf(key, standard)}\`` : ''} | \`${variableOf(key)}\` | ${cell(about)} |`,
);
const reasons = [...new Set(Object.values(inertKeys))];
const inert = reasons.map((why) => {
  const keys = Object.keys(inertKeys).filter((key) => inertKeys[key] === why);
  return `| ${cell(why)} | ${keys.map((key) => `\`${key}\``).join(' ')} |`;
});
const refused = Object.entries(refusedKeys).map(
  ([key, { why }]) => `| \`${key}\` | ${cell(why)} |`,
);

const tables: Record<string, string[]> = {
  applied: [
    '| Key | Kind | Default | Variable | What it does |',
    '|---|---|---|---|---|',
    ...applied,
  ],
  refused: ['| Key | Why |', '|---|---|', ...refused],
  inert: ['| Why | Keys |', '|---|---|', ...inert],
};
fill(new URL('../docs/configuration.md', import.meta.url), tables);

const limits = limitNames.map((name) => `| \`${name}\` | ${limitDefaultText(name)} |`);
fill(new URL('../docs/server.md', import.meta.url), {
  limits: ['| Limit | Default |', '|---|---|', ...limits],
});

/** Puts each table between the two marks that have its name. */
function fill(page: URL, tables: Record<string, string[]>): void {
  let text = readFileSync(page, 'utf8');
  for (const [name, lines] of Object.entries(tables)) {
    const [begin, end] = [`<!-- ${name} -->`, `<!-- end of ${name} -->`];
    const from = text.indexOf(begin) + begin.length;
    text = `${text.slice(0, from)}\n${lines.join('\n')}\n${text.slice(text.indexOf(end))}`;
  }
  writeFileSync(page, text);
}
