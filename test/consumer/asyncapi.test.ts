import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { beforeAll, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");

interface Parsed {
  readonly document: { version(): string } | undefined;
  /** `severity`: 0 is an error, 1 a warning, from 2 on it is advice. */
  readonly diagnostics: readonly {
    readonly severity: number;
    readonly code: string | number;
    readonly message: string;
  }[];
}

let parse: (text: string) => Promise<Parsed>;
beforeAll(async () => {
  // Safe: so it is declared in scripts/install.mjs, which has no types.
  const { installPackage } = (await import(
    pathToFileURL(join(root, "scripts/install.mjs")).href
  )) as {
    installPackage(folder: string, say: (line: string) => void): void;
  };
  installPackage("test/asyncapi", console.log);
  const parser = join(root, "test/asyncapi/node_modules/@asyncapi/parser/cjs/index.js");
  if (!existsSync(parser)) throw new Error(`there is no ${parser}`);
  // Safe: what of the package is used here.
  const { Parser } = (await import(pathToFileURL(parser).href)) as {
    Parser: new () => { parse: typeof parse };
  };
  const one = new Parser();
  parse = (text) => one.parse(text);
});

test.each([
  ["the sample", "examples/files/server.ts", 11],
  ["an application with every feature", "test/contract/every-feature.ts", 6],
  ["an application with messages of each kind", "test/asyncapi/every-message.ts", 15],
])("AsyncAPI's parser reports no errors or warnings for %s", async (_name, module, operations) => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["src/tools/cli/main.ts", "asyncapi", module],
    {
      cwd: root,
      encoding: "utf8",
    },
  );
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const { document, diagnostics } = await parse(stdout);
  // It advises to use a version that few tools read yet.
  expect(
    diagnostics.filter(({ severity, code }) => severity <= 1 || code !== "asyncapi-latest-version"),
  ).toEqual([]);
  expect(document?.version()).toBe("3.0.0");
  expect(Object.keys(JSON.parse(stdout).operations)).toHaveLength(operations);
});
