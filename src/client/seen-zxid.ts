/**
 * The newest transaction that a reply has shown to this session, kept in two halves: it moves with
 * every reply, and a BigInt each would cost more than the rest of the header.
 */
export class SeenZxid {
  #high = 0;
  #low = 0;
  #toldZxid: bigint | undefined;

  get zxid(): bigint {
    return (BigInt(this.#high) << 32n) | BigInt(this.#low >>> 0);
  }

  /** Up to where every watch has told what it had to tell. */
  get toldZxid(): bigint {
    return this.#toldZxid ?? this.zxid;
  }

  get isSetting(): boolean {
    return this.#toldZxid !== undefined;
  }

  /** Watches are set again: until all are, the replies run ahead of what they tell. */
  beginSetting(): void {
    this.#toldZxid = this.toldZxid;
  }

  endSetting(): void {
    this.#toldZxid = undefined;
  }

  /** Only replies count: an event's zxid may run ahead of what this session has been answered. */
  sees(high: number, low: number): void {
    if (high > this.#high || (high === this.#high && low >>> 0 > this.#low >>> 0)) {
      this.#high = high;
      this.#low = low;
    }
  }
}
