import { execFile } from "node:child_process";
import { join } from "node:path";
import { Readable } from "node:stream";
import { promisify } from "node:util";
import fc from "fast-check";
import { expect, test } from "vitest";
import { codePoint } from "../../../test/support/code-point.ts";
import { forTerminal } from "./command.ts";
import type { CommandContext } from "./setup/define-command.ts";

/** What may act on a terminal: controls but line ends and tabs, separators, direction marks, BOM. */
const acting =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Surrogate}/u;

function terminal(more: Partial<CommandContext> = {}) {
  const shown: string[] = [];
  const show = (text: string) => void shown.push(text);
  const context: CommandContext = {
    env: {},
    clock: { now: () => 7 },
    print: show,
    complain: show,
    wait: async () => undefined,
    developmentSecret: async () => "s",
    ...more,
  };
  return { shown, show, context: forTerminal(context) };
}

test("no printed text, complaint, progress or question contains control characters", () => {
  const text = fc.string({
    unit: fc.oneof(
      codePoint,
      fc.constantFrom("\u009b", "\u202e", "\u001b", "\n", "\t", "\u2066", "\u0000"),
    ),
  });
  fc.assert(
    fc.property(text, (given) => {
      const ask = async (question: string) => {
        show(question);
        return "yes";
      };
      const { shown, show, context } = terminal({ progress: (part) => show(part), ask });
      context.print(given);
      context.complain(given);
      context.progress?.(given);
      void context.ask?.(given);
      expect(shown).toHaveLength(4);
      for (const one of shown) expect(one).not.toMatch(acting);
      // What shows progress is one line, in the place of the one before.
      expect(shown[2]).not.toMatch(/[\n\t]/);
    }),
  );
});

test("a line clears shown progress, which it would continue", () => {
  const { shown, show, context } = terminal({ progress: (text) => show(`progress ${text}`) });
  context.print("first");
  context.progress?.("1 of 2");
  context.progress?.("2 of 2");
  context.print("printed");
  context.complain("a complaint");
  context.progress?.("again");
  context.complain("another");
  context.progress?.("last");
  context.progress?.("");
  context.print("end");
  expect(shown).toEqual([
    "first",
    ...["progress 1 of 2", "progress 2 of 2", "progress ", "printed", "a complaint"],
    ...["progress again", "progress ", "another", "progress last", "progress ", "end"],
  ]);
});

test("printed JSON parses to the same value", () => {
  fc.assert(
    fc.property(fc.json({ stringUnit: "binary" }), (json) => {
      const { shown, context } = terminal();
      context.print(json);
      context.print(JSON.stringify(JSON.parse(json), undefined, 2));
      for (const line of shown) expect(JSON.parse(line)).toEqual(JSON.parse(json));
    }),
  );
});

test("keeps lines, tabs and letters, and normalises Windows line ends", () => {
  const { shown, context } = terminal();
  context.print("usage\n\n\toption → ö 東京 😀\r\nlast");
  context.complain("");
  expect(shown).toEqual(["usage\n\n\toption → ö 東京 😀\nlast", ""]);
});

test("passes the rest of a command's context on unchanged, and reads no input before it is needed", async () => {
  let reads = 0;
  const input = Readable.from([]);
  const { signal } = new AbortController();
  const given: CommandContext = {
    env: { A: "b" },
    clock: { now: () => 7 },
    input: () => {
      reads += 1;
      return input;
    },
    print: () => undefined,
    complain: () => undefined,
    stopping: () => signal,
    wait: async () => undefined,
    developmentSecret: async () => "s",
  };
  const context = forTerminal(given);
  expect([context.env, context.clock.now(), reads]).toEqual([{ A: "b" }, 7, 0]);
  expect([context.input?.(), context.stopping?.(), await context.developmentSecret()]).toEqual([
    input,
    signal,
    "s",
  ]);
  await context.wait(0);
  expect([
    terminal().context.progress,
    terminal().context.ask,
    terminal().context.stopping,
  ]).toEqual([undefined, undefined, undefined]);
});

test.each<[readonly string[], string]>([
  [
    ["api-keys", "revoke", "server.js", "acme"],
    "neither an ID is given nor a key on standard input",
  ],
  [["trace", "server.js", "r1", "--logs", "-"], "nothing comes in on standard input"],
])("does not wait for a terminal to type the input: %j", async (args, problem) => {
  const terminal = "data:text/javascript,process.stdin.isTTY = true;";
  const main = join(import.meta.dirname, "main.ts");
  // Its standard input stays open.
  const running = promisify(execFile)(process.execPath, ["--import", terminal, main, ...args], {
    timeout: 120_000,
  });
  await expect(running).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining(problem),
  });
});
