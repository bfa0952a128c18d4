/**
 * The built page, read once and kept: what is asked for is looked up among the files that were there at
 * the start, and never made into a path. So nothing outside the folder can be had, whatever is asked.
 *
 * In: the folder that the build wrote. Out: bytes with their headers. Links in it are not followed.
 */

import { randomBytes } from 'node:crypto';
import { type Dirent, readdirSync, readFileSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import { gzipSync } from 'node:zlib';

// biome-ignore format: a table is read down its columns
const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js':   'text/javascript; charset=utf-8',
  '.css':  'text/css; charset=utf-8',
  '.svg':  'image/svg+xml',
  '.png':  'image/png',
  '.json': 'application/json',
  '.webmanifest': 'application/manifest+json',
};

const filesMax = 500;
const fileBytesMax = 4 * 1024 * 1024;
const noncePlace = '__CSP_NONCE__';

interface PageFile {
  readonly type: string;
  readonly bytes: Buffer;
  readonly zipped: Buffer | null;
  /** Its name changes with what is in it. */
  readonly isLasting: boolean;
}

/** On every answer, whatever it is. */
export const safeHeaders: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'content-security-policy': policy(),
};

/** No inline script, no inline style but the editor's, which knows the nonce; nothing from elsewhere. */
function policy(nonce?: string): string {
  const style = nonce === undefined ? "'self'" : `'self' 'nonce-${nonce}'`;
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src ${style}`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

export class Page {
  readonly #files: ReadonlyMap<string, PageFile>;

  constructor(folder: string | undefined) {
    this.#files = folder === undefined ? new Map() : readAll(folder);
  }

  get isBuilt(): boolean {
    return this.#files.has('/index.html');
  }

  /** Null: there is no such file, and it is no view of the page either. */
  answer(path: string, acceptsGzip: boolean): Response | null {
    const file = this.#files.get(path);
    if (file !== undefined && path !== '/index.html') return this.#file(file, acceptsGzip);
    // Views are paths without a dot in their last part: /tree, /groups.
    if (path !== '/index.html' && /\.[^/]*$/.test(path)) return null;
    const index = this.#files.get('/index.html');
    return index === undefined ? null : this.#index(index);
  }

  #file({ bytes, zipped, type, isLasting }: PageFile, acceptsGzip: boolean): Response {
    const useZipped = acceptsGzip && zipped !== null;
    return new Response(new Uint8Array(useZipped ? zipped : bytes), {
      headers: {
        ...safeHeaders,
        'content-type': type,
        'cache-control': isLasting ? 'public, max-age=31536000, immutable' : 'no-cache',
        vary: 'accept-encoding',
        ...(useZipped && { 'content-encoding': 'gzip' }),
      },
    });
  }

  #index({ bytes, type }: PageFile): Response {
    const nonce = randomBytes(18).toString('base64');
    return new Response(bytes.toString('utf8').replaceAll(noncePlace, nonce), {
      headers: {
        ...safeHeaders,
        'content-type': type,
        'cache-control': 'no-store',
        'content-security-policy': policy(nonce),
      },
    });
  }
}

function readAll(folder: string): Map<string, PageFile> {
  const files = new Map<string, PageFile>();
  for (const { entry, path } of entriesBelow(folder)) {
    const type = types[extname(entry.name)];
    if (!entry.isFile() || type === undefined || files.size >= filesMax) continue;
    const bytes = readFileSync(path);
    if (bytes.length > fileBytesMax) continue;
    const name = `/${relative(folder, path).split(sep).join('/')}`;
    const isText = /^text|json|svg/.test(type);
    const zipped = isText && bytes.length > 1_000 ? gzipSync(bytes) : null;
    files.set(name, { type, bytes, zipped, isLasting: name.startsWith('/assets/') });
  }
  return files;
}

/** Folder by folder: what `recursive` makes of a link to a folder differs between versions of Node. */
function* entriesBelow(folder: string): Generator<{ entry: Dirent; path: string }> {
  let entries: Dirent[];
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return; // not built
    throw error;
  }
  for (const entry of entries) {
    const path = join(folder, entry.name);
    yield { entry, path };
    if (entry.isDirectory()) yield* entriesBelow(path);
  }
}
