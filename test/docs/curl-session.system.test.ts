import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type StartedProcess, signalGroup, startProcess } from "../support/process.ts";
import { nameOf, type WrittenBlocks, writeBlocks } from "./compile.ts";
import { allBlocks, type CodeBlock, root } from "./markdown.ts";
import { answers, runSteps, stepsOf } from "./session.ts";

// The console blocks of a document are one session, spoken with the sample; those below this heading with the handler there.
const handlerHeading = "A first handler";
const blocks = allBlocks();
const sessions = blocks.filter(
  ({ language, heading }) => language === "console" && heading !== handlerHeading,
);
const handlerSession = blocks.filter(
  ({ language, heading }) => language === "console" && heading === handlerHeading,
);
const handler = blocks.filter(
  (block) => block.heading === handlerHeading && nameOf(block) !== undefined,
);

let directory: string;
let started: StartedProcess | undefined;
let written: WrittenBlocks | undefined;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "keelson-docs-"));
});

afterEach(async () => {
  if (started !== undefined) signalGroup(started, "SIGKILL");
  await started?.exited;
  written?.remove();
  rmSync(directory, { recursive: true, force: true, maxRetries: 20 });
  [started, written] = [undefined, undefined];
});

test.each([...new Set(sessions.map(({ document }) => document))])(
  "the session in %s prints the documented answers",
  async (document) => {
    started = await start("examples/files/main.ts");

    expect(await differences(sessions.filter((block) => block.document === document))).toEqual([]);
  },
);

test("the session of the tour leads from a token to the errors", () => {
  const commands = sessions.filter(({ document }) => document === "docs/tour.md").flatMap(stepsOf);

  expect(commands.length).toBeGreaterThan(10);
});

test("the first handler of the tour fits into 30 lines, runs unchanged, and answers as documented", async () => {
  expect(handler.map(({ code }) => code.split("\n").length < 30)).toEqual([true]);
  written = writeBlocks(handler);
  started = await start(written.files[0]?.path ?? "");

  expect(await differences(handlerSession)).toEqual([]);
});

test.each([
  ["text that is the same", '{"id":"1"} 200', '{"id":"1"} 200\n', true],
  ["another value", '{"id":"1"} 200', '{"id":"2"} 200', false],
  ["any value where … stands", '{"id":"…"} 200', '{"id":"4f1c"} 200', true],
  ["nothing where … stands", '{"id":"…"} 200', '{"id":""} 200', false],
  ["more than the document says", '{"id":"1"}', '{"id":"1"}\n{"id":"2"}', false],
  ["characters of an expression taken as they are", "a.c", "abc", false],
])("an answer is compared: %s", (_case, answer, printed, same) => {
  expect(answers({ answer }, printed)).toBe(same);
});

/** Starts a program against the sources, as `npm start` starts the sample against dist/. */
function start(program: string): Promise<StartedProcess> {
  const loader = pathToFileURL(join(root, "test/support/keelson-sources.mjs")).href;
  return startProcess(
    process.execPath,
    ["--import", loader, "--env-file=examples/files/development.env", program],
    {
      ...environment(),
      PORT: "0",
      LOG_FORMAT: "json",
    },
  );
}

async function differences(session: readonly CodeBlock[]): Promise<object[]> {
  const steps = session.flatMap(stepsOf);
  const printed = await runSteps(steps, environment(), started?.port ?? 0);
  return steps.flatMap((step, index) =>
    answers(step, printed[index] ?? "") ? [] : [{ ...step, printed: printed[index] }],
  );
}

/** What a newcomer's shell has: nothing set, data and secret in a directory of their own. */
function environment(): Record<string, string | undefined> {
  return {
    KEELSON_DIRECTORY: directory,
    KEELSON_AUTH_SECRET: undefined,
    NODE_ENV: undefined,
    LOG_LEVEL: undefined,
    AWS_ENDPOINT_URL: undefined,
  };
}
