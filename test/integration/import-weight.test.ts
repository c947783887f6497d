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

test.each(["index.ts", "lambda/index.ts", "container/index.ts", "operators/index.ts"])(
  "importing %s loads no AWS client, no jose, no zod, no embedded stack",
  async (entry) => {
    const loaded = await loadedBy(entry);

    expect(loaded.length).toBeGreaterThan(10);
    expect(
      loaded.filter((url) =>
        /node_modules\/(@aws-sdk|@smithy|jose|zod|dynalite)\/|src\/(embedded|testing|cli)\//.test(
          url,
        ),
      ),
    ).toEqual([]);
  },
);

test("importing keelson loads no Middy either", async () => {
  expect((await loadedBy("index.ts")).filter((url) => url.includes("@middy"))).toEqual([]);
});

test("importing keelson/lambda loads nothing that only invocations run on", async () => {
  const lazy =
    /@aws-lambda-powertools|src\/(server\/runtime|run\/(context|pipeline)|config\/(read\/resolver|cache\/cached-rows)|log\/server-logger|lambda\/(http-events|adopted-handler|consume-batch|dispatch-records))\.ts$/;

  expect((await loadedBy("lambda/index.ts")).filter((url) => lazy.test(url))).toEqual([]);
});

test.each(["index.ts", "lambda/index.ts"])(
  "importing %s loads nothing of writes, messages and what operators do",
  async (entry) => {
    const lazy =
      /src\/(once\/(once|claims|claimed-run|run-commit)|run\/(perform-write|effects|consume|process-message)|config\/operate\/(?!set-config\.).+|operators\/(?!config-handlers\.).+)\.ts$/;

    expect((await loadedBy(entry)).filter((url) => lazy.test(url))).toEqual([]);
  },
);
