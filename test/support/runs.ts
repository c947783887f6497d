/**
 * The number of runs of a slow property, or of overlapping requests: a twentieth of `all`, and `all`
 * with `npm run coverage` or `KEELSON_TEST_RUNS=all`.
 */
export function runs(all: number): number {
  return process.env["KEELSON_TEST_RUNS"] === "all" ? all : Math.ceil(all / 20);
}
