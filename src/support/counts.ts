/** How often each number was added and not taken away again. */
export class Counts {
  readonly #byNumber = new Map<number, number>();

  get isEmpty(): boolean {
    return this.#byNumber.size === 0;
  }

  has(number: number): boolean {
    return this.#byNumber.has(number);
  }

  add(number: number): void {
    this.#byNumber.set(number, (this.#byNumber.get(number) ?? 0) + 1);
  }

  delete(number: number): void {
    const left = (this.#byNumber.get(number) ?? 0) - 1;
    if (left > 0) this.#byNumber.set(number, left);
    else this.#byNumber.delete(number);
  }
}
