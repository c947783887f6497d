import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const run = promisify(execFile);

/** The files that importing `entry` loads, in a process of its own. */
async function loadedBy(entry: string): Promise<string[]> {
  const script = `
    import { registerHooks } from "node:module";
    const loaded = [];
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
    await import(${JSON.stringify(new URL(`../../src/${entry}`, import.meta.url).href)});
    console.log(JSON.stringify(loaded));
  `;
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", script], {
    maxBuffer: 10_000_000,
  });
  return JSON.parse(stdout) as string[];
}

test.each([
  "index.ts",
  "hosts/lambda/index.ts",
  "hosts/container/index.ts",
  "app/operators/index.ts",
])("importing %s loads no AWS client, no jose, no zod, no embedded stack", async (entry) => {
  const loaded = await loadedBy(entry);

  expect(loaded.length).toBeGreaterThan(10);
  expect(
    loaded.filter((url) =>
      /node_modules\/(@aws-sdk|@smithy|jose|zod|dynalite)\/|src\/(embedded|tools)\//.test(url),
    ),
  ).toEqual([]);
});

test("importing keelson loads no Middy either", async () => {
  expect((await loadedBy("index.ts")).filter((url) => url.includes("@middy"))).toEqual([]);
});

test("importing keelson/lambda loads nothing that only invocations need", async () => {
  const lazy =
    /@aws-lambda-powertools|src\/(app\/(server\/create-runtime|ctx\/context|run\/pipeline)|parts\/config\/(read\/resolver|cache\/cached-rows)|base\/log\/server-logger|hosts\/(lambda-http\/http-events|middy\/adopted-handler|lambda\/dispatch-records))\.ts$/;

  expect((await loadedBy("hosts/lambda/index.ts")).filter((url) => lazy.test(url))).toEqual([]);
});

test.each(["index.ts", "hosts/lambda/index.ts"])(
  "importing %s loads no code for writes, messages and operator functions",
  async (entry) => {
    const lazy =
      /src\/(parts\/(once\/(once|claims|run-once|run-commit)|config\/operate\/(?!set-config\.).+)|app\/(run\/(write|consume|process-message)|ctx\/effects|operators\/(?!config-handlers\.).+))\.ts$/;

    expect((await loadedBy(entry)).filter((url) => lazy.test(url))).toEqual([]);
  },
);
