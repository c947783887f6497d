import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "keelson-command-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const server = `import { buildServer } from ${JSON.stringify(new URL("../../src/index.ts", import.meta.url).href)};
export const server = buildServer({ features: [] });
`;

/** Runs the command in a process of its own, to its end. */
function keelson(source: string) {
  const module = join(folder, "server.mjs");
  writeFileSync(module, source);
  const run = spawnSync(
    process.execPath,
    [join(root, "src/tools/cli/main.ts"), "openapi", module],
    {
      encoding: "utf8",
      timeout: 60_000,
    },
  );
  return { code: run.status, title: JSON.parse(run.stdout).info.title, err: run.stderr };
}

test("a command exits once it has printed its answer", () => {
  expect(keelson(server)).toEqual({ code: 0, title: "API", err: "" });
});

test("a command exits even if its module keeps something running, and reports it", () => {
  expect(keelson(`${server}setInterval(() => {}, 1_000);`)).toEqual({
    code: 0,
    title: "API",
    err: "keelson: the module has started something that goes on; name one that only builds the server\n",
  });
});
