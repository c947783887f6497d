// Bundles the sample's functions into infra/dist, and holds the bundle to its budgets.
import { join } from "node:path";
import { bundleFunctions, readWith } from "./bundle.mjs";

const root = join(import.meta.dirname, "..");

/** What a cold start reads, and what the archive holds, in bytes; somewhat above what they are, so that growth is seen. */
const budgets = {
  "read at start, without SDK and zod": 60_000,
  "read at start": 345_000,
  "all of it": 1_080_000,
};

/** What is no code of the sample and keelson's. */
const groups = [
  { name: "zod", test: /node_modules\/zod\// },
  { name: "sdk", test: /node_modules\/(?:@aws-sdk|@smithy|mnemonist|obliterator)\// },
];

/**
 * One bundle for all functions: they run the same server. The SDK is bundled: the version that was tested is the one that
 * runs, whatever the runtime of the day has, and a file with what is used of it is read faster than the runtime's folder.
 * Names are not kept, which would cost 40 KB: the errors of keelson and of the SDK say theirs.
 *
 * @returns the sizes, in bytes, by the names of the budgets.
 * @throws Error naming each budget that is exceeded.
 */
export async function bundle(say) {
  const bundled = await bundleFunctions({
    entry: { lambda: join(root, "examples/files/lambda.ts") },
    outdir: join(root, "infra/dist"),
    tsconfig: join(root, "tsconfig.json"),
    groups,
    // Not in the archive, which it would triple: they stay here, for whoever reads a stack trace.
    sourcemap: "hidden",
  });
  const sizes = sizesOf(bundled);
  for (const [name, size] of Object.entries(sizes)) say(`${name}: ${kilobytes(size)}`);
  const exceeded = Object.entries(budgets).filter(([name, budget]) => sizes[name] > budget);
  if (exceeded.length > 0) {
    const reasons = exceeded.map(([name, budget]) => `${name}: ${kilobytes(sizes[name])}, more than ${kilobytes(budget)}`);
    throw new Error(
      `the bundle is larger than its budget: ${reasons.join("; ")}; look what has come in, or raise the budget in scripts/package-bundle.mjs`,
    );
  }
  return sizes;
}

function sizesOf({ files, apart }) {
  const of = (chunks) => chunks.reduce((total, { code = "" }) => total + Buffer.byteLength(code), 0);
  const isEntry = (file) => file.isEntry;
  const read = of(readWith(files, isEntry));
  const [zod, sdk] = groups.map((group) => of(readWith(apart, isEntry).filter(({ name }) => name === group.name)));
  return {
    "read at start, without SDK and zod": read - sdk - zod,
    "read at start": read,
    "of it zod": zod,
    "of it the SDK": sdk,
    "all of it": of(files),
  };
}

function kilobytes(bytes) {
  return `${Math.round(bytes / 1000)} KB`;
}
