/**
 * How the console's page is built: `vite build web` puts it into dist/web.
 *
 * Nothing may stand inline in the page (its Content-Security-Policy forbids it), so no asset is turned
 * into a data URL and no preload script is written into the HTML. For work on the page alone,
 * `vite web` serves it and hands /api to a console that runs on 127.0.0.1:4180.
 */
import { resolve } from 'node:path';
import { defineConfig } from 'vite';

// biome-ignore lint/style/noDefaultExport: Vite reads its settings from there
export default defineConfig({
  root: import.meta.dirname,
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: resolve(import.meta.dirname, '../dist/web'),
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { host: '127.0.0.1', proxy: { '/api': 'http://127.0.0.1:4180' } },
});
