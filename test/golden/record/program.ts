/**
 * Runs a client program that says on its standard output what it is about to do.
 *
 *   name <words>   what follows is recorded under this name
 *   cut, release   ends the program's connections, and lets it connect again
 *
 * Each line is answered with a line, so that the program goes on only once it has been heeded.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Recorder } from './recorder.ts';

const timeoutMs = 120_000;

export async function runRecorded(
  command: string,
  args: string[],
  recorder: Recorder,
): Promise<void> {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors = (errors + chunk.toString()).slice(-8_000);
  });
  child.stdin.on('error', () => {}); // it ended; the exit code says how
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line.startsWith('name ')) recorder.name = line.slice('name '.length);
    else if (line === 'cut') recorder.cut();
    else if (line === 'release') recorder.release();
    else return;
    child.stdin.write('ok\n');
  });
  const [code] = await once(child, 'close');
  clearTimeout(timer);
  if (code !== 0) {
    throw new Error(`${command} ended with ${code} in '${recorder.name}':\n${errors}`);
  }
}
