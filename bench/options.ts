/** What a bench is told on the command line. */

export interface BenchOptions {
  readonly seconds: number;
  readonly tries: number;
  readonly json: boolean;
  /** Rows whose name has every word of one of these; none of them means all rows. */
  readonly only: readonly (readonly string[])[];
  /** A built drover to measure in place of this folder's own. */
  readonly dist: string | undefined;
  /** A command that serves on {port} of 127.0.0.1 with its data in {dir}. */
  readonly serve: string | undefined;
  /** The Apache ZooKeeper to measure beside, by the name that test:peers gives it. */
  readonly peer: string | undefined;
  /** Nodes of the rows about a large tree. */
  readonly nodes: number;
}

export function isWanted(name: string, { only }: BenchOptions): boolean {
  const words = name.split(/\s+/);
  return only.length === 0 || only.some((one) => one.every((word) => words.includes(word)));
}

/** For people who wait; never mixed with the result. */
export function log(line: string): void {
  process.stderr.write(`bench: ${line}\n`);
}
