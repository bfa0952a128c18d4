/** Aligned columns without boxes, as wide on a terminal as they look there: 名 takes two places. */

import stringWidth from 'string-width';
import type { Output } from './output.ts';

/** Rows that decide how wide the columns are. Those behind them follow, and stick out where they must. */
const heldRowsMax = 200;
const heldCharsMax = 256 * 1024;
const widthMax = 100;

export class Columns {
  readonly #output: Pick<Output, 'write'>;
  readonly #widths: number[];
  #held: (readonly string[])[] | undefined;
  #heldChars = 0;

  constructor(output: Pick<Output, 'write'>, ...heads: string[]) {
    this.#output = output;
    this.#widths = heads.map(() => 0);
    this.#held = [];
    this.row(...heads);
  }

  /** The cells must be escaped. */
  row(...cells: readonly string[]): void {
    if (this.#held === undefined) {
      this.#print(cells);
      return;
    }
    this.#held.push(cells);
    for (const [i, cell] of cells.entries()) {
      this.#heldChars += cell.length;
      this.#widths[i] = Math.max(this.#widths[i]!, Math.min(widthMax, widthOf(cell)));
    }
    if (this.#held.length > heldRowsMax || this.#heldChars > heldCharsMax) this.end();
  }

  /** Prints what is held. */
  end(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const cells of held) this.#print(cells);
  }

  #print(cells: readonly string[]): void {
    const last = cells.length - 1;
    const line = cells
      .map((cell, i) => (i === last ? cell : padded(cell, this.#widths[i]!)))
      .join('  ');
    this.#output.write(`${line.trimEnd()}\n`);
  }
}

/** A place for each character, where all are of these: to look at any others takes a hundred times as long. */
const plain = /^[\x20-\x7e…]*$/;

const widthOf = (cell: string) => (plain.test(cell) ? cell.length : stringWidth(cell));

function padded(cell: string, width: number): string {
  return cell + ' '.repeat(Math.max(0, width - widthOf(cell)));
}
