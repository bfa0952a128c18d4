/**
 * Memory for records of any size, cut from large blocks that the garbage collector never looks into.
 *
 *   address   a number of 31 bits: slab (high part) and unit of 16 bytes within it (low 16 bits)
 *   slab      1 MiB, shared by many records; or a record of more than 256 KiB alone
 *   free      per size a list that runs through the free records themselves: the first 4 bytes of
 *             each hold the address of the next
 *
 * In: how many bytes. Out: an address, from which `slab` and `offset` give the place. A record never
 * moves; memory given back is used again for records of the same size.
 */

import { Buffer } from 'node:buffer';

const unitShift = 4;
const unitsPerSlabShift = 16;
const unitsPerSlab = 1 << unitsPerSlabShift;
const slabBytes = unitsPerSlab << unitShift;
/** Larger records get a slab of their own, of which there are not many. */
const sharedUnitsMax = 16_384;
/** Up to here every size has its own list; above, eight sizes for each doubling. */
const exactUnitsMax = 64;

/** The address has 31 bits, so that it stays a small integer: 32 GiB of shared slabs. */
const slotsMax = 1 << 15;
/** So many are left for what is under way when it is said that there is no room. */
const slotsSpare = 1 << 11;

const none = -1;
const noBytes = Buffer.alloc(0);

/** Units that a record of `bytes` takes: what `free` will give back. */
function unitsFor(bytes: number): number {
  const units = (bytes + 15) >>> unitShift;
  if (units <= exactUnitsMax || units > sharedUnitsMax) return units;
  const step = 1 << (28 - Math.clz32(units - 1));
  return Math.ceil(units / step) * step;
}

export class Slabs {
  readonly #slabs: Buffer[] = [];
  readonly #freeSlots: number[] = [];
  readonly #free = new Int32Array(sharedUnitsMax + 1).fill(none);
  #bump = none;
  #bumpUnitsLeft = 0;
  #bytes = 0;

  /** Bytes asked of the system. */
  get bytes(): number {
    return this.#bytes;
  }

  /** False before it is too late: what the log holds must fit. */
  get hasRoom(): boolean {
    return this.#slabs.length - this.#freeSlots.length < slotsMax - slotsSpare;
  }

  slab(address: number): Buffer {
    return this.#slabs[address >>> unitsPerSlabShift]!;
  }

  offset(address: number): number {
    return (address & (unitsPerSlab - 1)) << unitShift;
  }

  /** True when a record of `before` bytes has room for `after` and would not be smaller for it. */
  fits(before: number, after: number): boolean {
    return unitsFor(before) === unitsFor(after);
  }

  allocate(bytes: number): number {
    const units = unitsFor(bytes);
    if (units > sharedUnitsMax) return this.#slot(units << unitShift) << unitsPerSlabShift;
    const head = this.#free[units]!;
    if (head !== none) {
      this.#free[units] = this.slab(head).readInt32BE(this.offset(head));
      return head;
    }
    if (units > this.#bumpUnitsLeft) {
      this.#bump = this.#slot(slabBytes) << unitsPerSlabShift;
      this.#bumpUnitsLeft = unitsPerSlab;
    }
    const address = this.#bump;
    this.#bump += units;
    this.#bumpUnitsLeft -= units;
    return address;
  }

  free(address: number, bytes: number): void {
    const units = unitsFor(bytes);
    if (units > sharedUnitsMax) {
      const slot = address >>> unitsPerSlabShift;
      this.#bytes -= this.#slabs[slot]!.length;
      this.#slabs[slot] = noBytes;
      this.#freeSlots.push(slot);
      return;
    }
    this.slab(address).writeInt32BE(this.#free[units]!, this.offset(address));
    this.#free[units] = address;
  }

  #slot(bytes: number): number {
    const slot = this.#freeSlots.pop() ?? this.#slabs.length;
    if (slot >= slotsMax) throw new Error(`the tree has outgrown its ${slotsMax} slabs of memory`);
    this.#slabs[slot] = Buffer.allocUnsafeSlow(bytes);
    this.#bytes += bytes;
    return slot;
  }
}
