/**
 * What a worker thread starts with when drover runs from its TypeScript source: tsx does not reach a
 * worker's first file by itself. In: the file to run, as the second argument.
 */
import { register } from 'tsx/esm/api';

register();
await import(process.argv[3]);
