/**
 * How often a property is tried that computes for long, or how many requests overlap: a twentieth of `all`, and `all`
 * with `npm run coverage` or `KEELSON_TEST_RUNS=all`.
 */
export function runs(all: number): number {
  return process.env["KEELSON_TEST_RUNS"] === "all" ? all : Math.ceil(all / 20);
}
