/**
 * `npm start`: builds what is not built, or is older than its source, and serves on 127.0.0.1:2181 with
 * data in ./drover-data, and its console on http://127.0.0.1:4180. Arguments go to `drover serve`: `npm start -- --port 2182`.
 * Plain JavaScript on built-ins alone, since nothing else is there yet when it runs.
 */
import './built.mjs';

process.argv.splice(2, 0, 'serve', '--console-port', '4180');
await import(new URL('../dist/bin/drover.js', import.meta.url).href);
