/** What `drover align watch` shows again and again: on a terminal until Ctrl-C, elsewhere `--count` times. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Context, OptionValues } from './command.ts';
import { exitCodes } from './exit-codes.ts';
import { drawFrame, enter, leave, print, type View } from './kafka-view.ts';
import { within } from './within.ts';

export async function frames(
  { output, signal }: Context,
  options: OptionValues,
  look: () => Promise<View>,
): Promise<number> {
  const isLive = output.isTty && !output.isJson;
  const intervalMs = 1_000 * within(options.interval, '--interval', 0.05, 3_600, 1);
  const framesMax = within(options.count, '--count', 1, 1e9, isLive ? 1e9 : 1);
  if (isLive) output.write(enter);
  try {
    for (let frame = 0; frame < framesMax; frame++) {
      if (frame > 0) await delay(intervalMs, undefined, { signal });
      const view = await look();
      if (isLive) drawFrame(output, view);
      else print(output, view);
      await output.drained();
    }
  } catch (error) {
    if (!signal.aborted || !isLive) throw error; // a person ends it so; a script was interrupted
  } finally {
    if (isLive) {
      output.write(leave);
      await output.drained();
    }
  }
  return exitCodes.ok;
}
