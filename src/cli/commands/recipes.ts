/** What programs agree on, for shell scripts. */

import type { Command, CommandOption } from '../command.ts';

const loadRecipes = () => import('../recipe-commands.ts');

// biome-ignore format: a table is read down its columns
const timeout: CommandOption = { flags: '--timeout <seconds>',    about: 'gives up after so long' };
// biome-ignore format: a table is read down its columns
const waits: readonly CommandOption[] = [
  timeout,
  { flags: '--try',                  about: 'does not wait at all' },
];
// biome-ignore format: a table is read down its columns
const runs: readonly CommandOption[] = [
  { flags: '--name <text>',          about: 'who we are to others; host and process unless said' },
  { flags: '--kill-after <seconds>', about: 'from SIGTERM to SIGKILL, when it must stop; 5' },
];

// biome-ignore format: a table is read down its columns
export const recipeCommands: Readonly<Record<string, Command>> = {
  lock: {
    usage: 'lock <path> [command...]',
    about: 'runs -- command… while it holds a lock, ends it when the lock is in doubt, and ends with its code',
    group: 'recipes',
    options: [...waits, ...runs],
    args: ['path'],
    writes: true, only: 'argv',
    run: async (context, args, options) => (await loadRecipes()).lock(context, args, options),
  },
  elect: {
    usage: 'elect <path> [command...]',
    about: 'runs -- command… once it is elected, and stands again when it is deposed',
    group: 'recipes',
    options: [...runs, { flags: '--once', about: 'ends when it is deposed' }],
    args: ['path'],
    writes: true, only: 'argv',
    run: async (context, args, options) => (await loadRecipes()).elect(context, args, options),
  },
  semaphore: {
    usage: 'semaphore <path> [command...]',
    about: 'runs -- command… while it holds one of --limit leases',
    group: 'recipes',
    options: [
      { flags: '--limit <number>', about: 'how many there are; the same number everywhere' },
      { flags: '--count <number>', about: 'how many it takes; 1' },
      ...waits, ...runs,
    ],
    args: ['path'],
    writes: true, only: 'argv',
    run: async (context, args, options) => (await loadRecipes()).semaphore(context, args, options),
  },
  register: {
    usage: 'register <path> <service> [command...]',
    about: 'makes a service known while -- command… runs (Curator’s service discovery)',
    group: 'recipes',
    options: [
      { flags: '--address <host>',  about: 'where it can be reached; this machine’s name unless said' },
      { flags: '--port <number>',   about: 'and on which port' },
      { flags: '--payload <json>',  about: 'anything else that others should know' },
      ...runs,
    ],
    args: ['path', 'text'],
    writes: true, only: 'argv',
    run: async (context, args, options) => (await loadRecipes()).register(context, args, options),
  },
  barrier: {
    usage: 'barrier <action> <path>',
    about: 'makes scripts wait for each other: close, open, wait; join waits until --size have come',
    group: 'recipes',
    options: [timeout, { flags: '--size <number>', about: 'join: how many come together' }],
    args: [['close', 'open', 'wait', 'join'], 'path'],
    run: async (context, args, options) => (await import('../barrier-commands.ts')).barrier(context, args, options),
  },
  queue: {
    usage: 'queue <action> <path> [words...]',
    about: 'hands out work: put PATH data…, take PATH [-- command…], size PATH',
    group: 'recipes',
    options: [
      ...waits,
      { flags: '--order <order>',        about: 'fifo, priority or delay; the same everywhere', value: ['fifo', 'priority', 'delay'] },
      { flags: '--priority <number>',    about: 'put: lower is earlier' },
      { flags: '--delay <seconds>',      about: 'put: not before' },
      { flags: '--kill-after <seconds>', about: 'take: from SIGTERM to SIGKILL, when it must stop; 5' },
    ],
    args: [['put', 'take', 'size'], 'path'],
    run: async (context, args, options) => (await import('../queue-commands.ts')).queue(context, args, options),
  },
};
