// Runs API Extractor on all entry points together, so that it knows the types that another entry point exports.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Extractor, ExtractorConfig } from "@microsoft/api-extractor";

/**
 * Reads the declarations of dist/.
 *
 * @returns API Extractor's report of one module: it has the exports of `.`, and every other entry point as a namespace.
 * @throws Error with their problems, as a project with `skipLibCheck: false` would see them.
 */
export function extract(root, entries) {
  const folder = mkdtempSync(join(root, ".dist-api-")); // in the package, because outside it would count as a dependency
  const [entryFile, tsconfig] = [join(folder, "entries.d.ts"), join(folder, "tsconfig.json")];
  try {
    writeFileSync(entryFile, `${entries.map(exportsOf).join("\n")}\n`);
    writeFileSync(
      tsconfig,
      JSON.stringify({ compilerOptions: compilerOptions(root), files: [entryFile] }),
    );
    compile(root, tsconfig);
    const failed = [];
    Extractor.invoke(configuration(root, folder, entryFile, tsconfig), {
      localBuild: true,
      messageCallback(message) {
        message.handled = true;
        if (message.logLevel === "error") failed.push(message.text);
      },
    });
    if (failed.length > 0) throw new Error(failed.join("\n"));
    return readFileSync(join(folder, "all.api.md"), "utf8");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function exportsOf({ namespace, types }) {
  const path = JSON.stringify(`../${types.replace(/^\.\//, "").replace(/\.d\.ts$/, ".js")}`);
  return namespace === undefined
    ? `export * from ${path};`
    : `export * as ${namespace} from ${path};`;
}

function compilerOptions(root) {
  return {
    target: "es2024",
    lib: ["es2024"],
    module: "nodenext",
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
    types: ["node"],
    typeRoots: [join(root, "node_modules", "@types")],
  };
}

/** Uses the package's compiler. API Extractor has another one, which does not explain problems. */
function compile(root, tsconfig) {
  const require = createRequire(join(root, "package.json"));
  const tsc = join(dirname(require.resolve("typescript/package.json")), "bin", "tsc");
  const { stdout } = spawnSync(process.execPath, [tsc, "-p", tsconfig, "--pretty", "false"], {
    cwd: root,
    encoding: "utf8",
  });
  const errors = stdout
    .split(/\n(?=\S)/)
    .filter((text) => /error TS\d+/.test(text) && !/^[^(]*node_modules\//.test(text));
  if (errors.length > 0)
    throw new Error(
      `the declarations do not compile with skipLibCheck: false:\n${errors.join("\n")}`,
    );
}

function configuration(root, folder, entryFile, tsconfigFilePath) {
  return ExtractorConfig.prepare({
    configObjectFullPath: undefined,
    packageJsonFullPath: join(root, "package.json"),
    configObject: {
      projectFolder: root,
      mainEntryPointFilePath: entryFile,
      newlineKind: "lf",
      compiler: { tsconfigFilePath },
      apiReport: {
        enabled: true,
        includeForgottenExports: true,
        reportFileName: "all.api.md",
        reportFolder: folder,
        reportTempFolder: join(folder, "temp"),
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      // The compiler has checked the types, and TSDoc is not used. Types that no entry point exports have a separate report.
      messages: {
        compilerMessageReporting: { default: { logLevel: "none" } },
        extractorMessageReporting: { default: { logLevel: "none" } },
        tsdocMessageReporting: { default: { logLevel: "none" } },
      },
    },
  });
}
