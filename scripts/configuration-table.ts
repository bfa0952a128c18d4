/** Writes the tables of docs/configuration.md anew, from the table of keys: `npx tsx scripts/configuration-table.ts`. */
import { readFileSync, writeFileSync } from 'node:fs';
import {
  type AppliedKey,
  appliedKeys,
  inertKeys,
  refusedKeys,
  variableOf,
} from '../src/server/index.ts';

const page = new URL('../docs/configuration.md', import.meta.url);
const cell = (text: string) => text.replaceAll('|', '\\|');

const applied = Object.entries(appliedKeys as Record<string, AppliedKey>).map(
  ([key, { kind, default: standard, about }]) =>
    `| \`${key}\` | ${kind} | ${standard ? `\`${standard}\`` : ''} | \`${variableOf(key)}\` | ${cell(about)} |`,
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
let text = readFileSync(page, 'utf8');
for (const [name, lines] of Object.entries(tables)) {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- end of ${name} -->`];
  const from = text.indexOf(begin) + begin.length;
  text = `${text.slice(0, from)}\n${lines.join('\n')}\n${text.slice(text.indexOf(end))}`;
}
writeFileSync(page, text);
