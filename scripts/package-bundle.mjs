// Bundles the sample's functions into infra/dist, and holds the bundle to its budgets.
import { rmSync } from "node:fs";
import { basename, join } from "node:path";
import { build } from "esbuild";

const root = join(import.meta.dirname, "..");
const entry = "examples/files/lambda.ts";
const outdir = "infra/dist";

/** What a cold start reads, and what the archive holds, in bytes; somewhat above what they are, so that growth is seen. */
const budgets = {
  "read at start, without SDK and zod": 225_000,
  "read at start": 1_150_000,
  "all of it": 1_800_000,
};

/**
 * One bundle for all functions: they run the same server. ES modules, split, so that what is imported lazily (clients of
 * the SDK, jose, idempotency) is a file of its own, read when it is needed. The SDK is bundled: the version that was tested
 * is the one that runs, whatever the runtime of the day has, and a file with what is used of it is read faster than the
 * runtime's folder. Names are kept, since errors are logged under the name of their class.
 *
 * @returns the sizes, in bytes, by the names of the budgets.
 * @throws Error naming each budget that is exceeded.
 */
export async function bundle(say) {
  rmSync(join(root, outdir), { recursive: true, force: true });
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    outdir,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    splitting: true,
    minify: true,
    keepNames: true,
    legalComments: "none",
    // Not in the archive, which it would triple: they stay here, for whoever reads a stack trace.
    sourcemap: "external",
    format: "esm",
    platform: "node",
    target: "node22",
    mainFields: ["module", "main"], // the packages' ES modules, of which what is not used is left out
    plugins: [builtins],
    metafile: true,
    logLevel: "warning",
  });
  const sizes = sizesOf(metafile);
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

/**
 * An `import` of a module of Node's own makes all of its lazy members, of `node:http` a whole HTTP client; asked for like
 * this it makes none, which takes some 10 ms off a cold start. It is the same module, so that what patches it is seen.
 */
const builtins = {
  name: "builtins",
  setup: (esbuild) => {
    esbuild.onResolve({ filter: /^node:/ }, ({ path }) => ({ path, namespace: "builtin" }));
    esbuild.onLoad({ filter: /.*/, namespace: "builtin" }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule(${JSON.stringify(path)});`,
    }));
  },
};

function sizesOf({ outputs }) {
  const files = Object.entries(outputs).filter(([file]) => file.endsWith(".mjs"));
  const [first] = files.find(([file]) => basename(file) === "lambda.mjs");
  const atStart = new Set();
  const visit = (file) => {
    if (outputs[file] === undefined || atStart.has(file)) return;
    atStart.add(file);
    for (const { path, kind } of outputs[file].imports) if (kind === "import-statement") visit(path);
  };
  visit(first);
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
  const read = sum([...atStart].map((file) => outputs[file].bytes));
  const inputs = [...atStart].flatMap((file) => Object.entries(outputs[file].inputs));
  const of = (pattern) => sum(inputs.filter(([path]) => pattern.test(path)).map(([, { bytesInOutput }]) => bytesInOutput));
  const sdk = of(/node_modules\/(@aws-sdk|@smithy|mnemonist|obliterator)\//);
  const zod = of(/node_modules\/zod\//);
  return {
    "read at start, without SDK and zod": read - sdk - zod,
    "read at start": read,
    "of it zod": zod,
    "of it the SDK": sdk,
    "all of it": sum(files.map(([, { bytes }]) => bytes)),
  };
}

function kilobytes(bytes) {
  return `${Math.round(bytes / 1000)} KB`;
}
