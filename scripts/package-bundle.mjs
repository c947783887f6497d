// Bundles the sample's functions into infra/dist, and holds the bundle to its budgets.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { rolldown } from "rolldown";
import { rolldownPlugin } from "../src/tools/bundle/index.ts";

const root = join(import.meta.dirname, "..");

/** The folder of the bundle. */
export const bundleDirectory = join(root, "infra/dist");

/** Bytes that a cold start reads, and bytes of the archive: slightly above the current sizes, so that growth is noticed. */
const budgets = {
  "read at start, without SDK and zod": 91_800,
  "read at start": 370_300,
  "all of it": 1_392_000,
};

/** Code that belongs neither to the sample nor to keelson. */
const groups = [
  { name: "zod", pattern: /node_modules\/zod\// },
  { name: "sdk", pattern: /node_modules\/(?:@aws-sdk|@smithy|mnemonist|obliterator)\// },
];

/**
 * Makes one bundle for all functions, which run the same server. It contains the SDK, so the tested version runs regardless of
 * the runtime's own, and one file with the used parts is read faster than the runtime's folder. Names are not kept, which would
 * cost 40 KB: errors of keelson and of the SDK have their own names.
 *
 * @returns the sizes, in bytes, by the names of the budgets.
 * @throws Error naming each budget that is exceeded.
 */
export async function bundle(say) {
  const build = await rolldown({
    input: { lambda: join(root, "examples/files/lambda.ts") },
    tsconfig: join(root, "tsconfig.json"),
    plugins: [rolldownPlugin()],
    logLevel: "warn",
  });
  rmSync(bundleDirectory, { recursive: true, force: true });
  // Not in the archive, whose size they would triple. They stay here, to read stack traces with.
  const { output: files } = await build.write({ dir: bundleDirectory, sourcemap: "hidden" });
  const start = new Set(readAtStart(files).flatMap(({ moduleIds }) => moduleIds));
  const { output: apart } = await build.generate({
    codeSplitting: {
      groups: groups.map(({ name, pattern }) => ({
        name,
        test: (id) => start.has(id) && pattern.test(id),
      })),
      includeDependenciesRecursively: false,
    },
  });
  await build.close();
  const sizes = sizesOf(files, apart);
  for (const [name, size] of Object.entries(sizes)) say(`${name}: ${kilobytes(size)}`);
  const exceeded = Object.entries(budgets).filter(([name, budget]) => sizes[name] > budget);
  if (exceeded.length > 0) {
    const reasons = exceeded.map(
      ([name, budget]) => `${name}: ${kilobytes(sizes[name])}, more than ${kilobytes(budget)}`,
    );
    throw new Error(
      `the bundle is larger than its budget: ${reasons.join("; ")}; find the code that was added, or raise the budget in scripts/package-bundle.mjs`,
    );
  }
  return sizes;
}

function sizesOf(files, apart) {
  const of = (chunks) =>
    chunks.reduce((total, { code = "" }) => total + Buffer.byteLength(code), 0);
  const read = of(readAtStart(files));
  const [zod, sdk] = groups.map((group) => of(apart.filter(({ name }) => name === group.name)));
  return {
    "read at start, without SDK and zod": read - sdk - zod,
    "read at start": read,
    "of it zod": zod,
    "of it the SDK": sdk,
    "all of it": of(files),
  };
}

/** The entry and its imports. */
function readAtStart(files) {
  const byName = new Map(files.map((file) => [file.fileName, file]));
  const read = new Set(files.filter(({ isEntry }) => isEntry));
  for (const { imports } of read)
    for (const name of imports) if (byName.has(name)) read.add(byName.get(name));
  return [...read];
}

function kilobytes(bytes) {
  return `${Math.round(bytes / 1000)} KB`;
}
