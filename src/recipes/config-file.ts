/**
 * The last configuration that was good, in a file on this machine: what a process starts with while
 * ZooKeeper is down.
 *
 *   {"format":1,"path":…,"savedMs":…,"nodes":{"<key>":{"version":"0x…","value":…}}}
 *
 * Written whole, synced, and put in the place of the one before by a rename: after a crash there is
 * the old one or the new one. Readable by its owner alone, as configurations hold secrets.
 */

import { randomUUID } from 'node:crypto';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { formatJson, JsonError, parseJson } from './config-json.ts';

export interface SavedNode {
  /** The transaction that wrote it. Null: there was no node. */
  readonly version: bigint | null;
  /** As it stood in the node. Undefined when there was none. */
  readonly raw: unknown;
}

export interface SavedConfig {
  readonly savedMs: number;
  readonly nodes: ReadonlyMap<string, SavedNode>;
}

/** Keeps the file up to date: one write at a time, each of the newest. */
export class ConfigSaver {
  readonly #file: string;
  readonly #path: string;
  readonly #onFailure: (error: Error) => void;
  #saving: Promise<void> | undefined;
  #next: SavedConfig | undefined;

  constructor(file: string, path: string, onFailure: (error: Error) => void) {
    this.#file = file;
    this.#path = path;
    this.#onFailure = onFailure;
  }

  save(config: SavedConfig): void {
    this.#next = config;
    this.#saving ??= this.#run();
  }

  /** Resolves when all that was asked for is on disk, or has failed. */
  async settled(): Promise<void> {
    await this.#saving;
  }

  async #run(): Promise<void> {
    try {
      for (let config = this.#next; config !== undefined; config = this.#next) {
        this.#next = undefined;
        try {
          await writeConfigFile(this.#file, this.#path, config);
        } catch (error) {
          this.#onFailure(error as Error);
        }
      }
    } finally {
      this.#saving = undefined; // in this very turn: whoever saves in the next one begins anew
    }
  }
}

/** Null when there is no such file. Throws a JsonError when it is not one of ours, or of another path. */
export async function readConfigFile(file: string, path: string): Promise<SavedConfig | null> {
  let bytes: Buffer;
  try {
    bytes = await readFile(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  const saved = parseJson(bytes, file) as Partial<Record<string, unknown>> | null;
  if (saved?.format !== 1 || typeof saved.savedMs !== 'number' || !isObject(saved.nodes)) {
    throw new JsonError(`${file}: not a file that a configuration store wrote`);
  }
  if (saved.path !== path) {
    throw new JsonError(
      `${file}: holds the configuration of ${String(saved.path)}, not of ${path}`,
    );
  }
  const nodes = new Map<string, SavedNode>();
  for (const [key, node] of Object.entries(saved.nodes)) {
    const { version, value } = node as { version?: unknown; value?: unknown };
    const isVersion = typeof version === 'string' && /^0x[0-9a-f]{1,16}$/.test(version);
    nodes.set(key, { version: isVersion ? BigInt(version) : null, raw: value });
  }
  return { savedMs: saved.savedMs, nodes };
}

export async function writeConfigFile(
  file: string,
  path: string,
  { savedMs, nodes }: SavedConfig,
): Promise<void> {
  const content: Record<string, unknown> = {};
  for (const [key, { version, raw }] of nodes) {
    if (version !== null) content[key] = { version: `0x${version.toString(16)}`, value: raw };
  }
  const text = formatJson({ format: 1, path, savedMs, nodes: content }, file);
  const temporary = `${file}.${randomUUID()}.tmp`;
  try {
    await writeSynced(temporary, text);
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncDirectory(dirname(file));
}

async function writeSynced(file: string, text: string): Promise<void> {
  const handle = await open(file, 'wx', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** A rename lasts once the directory is synced. Windows has no such thing, and needs none. */
async function syncDirectory(directory: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
