import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { codePoint } from "../../../test/support/code-point.ts";
import { prettyLine } from "./pretty-line.ts";

const time = "2026-01-02T03:04:05.678Z";
const pretty = (fields: object, colour = false) =>
  prettyLine(JSON.stringify({ level: "info", msg: "file.created", ...fields, time }), colour);

describe("a line for people", () => {
  it("has the time of day, the level, the message and the fields, words bare and all else as JSON", () => {
    expect(
      pretty({
        requestId: "r1",
        sizeMb: 2,
        name: "a b",
        tags: ["x", { y: 1 }],
        none: null,
        empty: "",
      }),
    ).toBe(
      '03:04:05.678 INFO  file.created requestId=r1 sizeMb=2 name="a b" tags=["x",{"y":1}] none=null empty=""',
    );
  });

  it.each([
    ["debug", "DEBUG", 36],
    ["info", "INFO ", 32],
    ["warn", "WARN ", 33],
    ["error", "ERROR", 31],
  ])("shows %s in its own color, if there are colors", (level, shown, code) => {
    expect(pretty({ level, a: 1 })).toBe(`03:04:05.678 ${shown} file.created a=1`);
    expect(pretty({ level, a: 1 }, true)).toBe(
      `\u001b[2m03:04:05.678\u001b[0m \u001b[${code}m${shown}\u001b[0m file.created \u001b[2ma=\u001b[0m1`,
    );
  });

  it("puts stacks below, indented, including those of causes", () => {
    const cause = { name: "Error", message: "why", stack: "Error: why\n    at b (b.ts:2:1)" };
    const error = {
      name: "Error",
      message: "boom",
      stack: "Error: boom\n    at a (a.ts:1:1)",
      code: "E1",
      cause,
    };
    expect(pretty({ error })).toBe(
      [
        '03:04:05.678 INFO  file.created error={"name":"Error","message":"boom","code":"E1","cause":{"name":"Error","message":"why"}}',
        "    Error: boom",
        "    at a (a.ts:1:1)",
        "    Error: why",
        "    at b (b.ts:2:1)",
      ].join("\n"),
    );
    expect(pretty({ stack: "prod", a: { stack: 3 } })).toBe(
      '03:04:05.678 INFO  file.created stack=prod a={"stack":3}',
    );
  });

  it("puts the stack of an error that failed a request below, with those of its causes, line by line", () => {
    const stack = "Error: boom\n    at a (a.ts:1:1)";
    const causes = [
      { name: "Error", message: "why", stack: "Error: why\n    at b (b.ts:2:1)" },
      { name: "Error", message: "root", stack: "Error: root" },
    ];
    expect(
      pretty({ level: "error", status: 500, message: "boom", stack, causes }).split("\n"),
    ).toEqual([
      '03:04:05.678 ERROR file.created status=500 message=boom causes=[{"name":"Error","message":"why"},{"name":"Error","message":"root"}]',
      "    Error: boom",
      "    at a (a.ts:1:1)",
      "    Error: why",
      "    at b (b.ts:2:1)",
      "    Error: root",
    ]);
  });

  it("lets no text imitate another record or affect the terminal", () => {
    const forged = "x\n03:04:05.678 ERROR forged\r\u001b[31mred\u001b[0m\u009b2J\u2028\u202e";
    fc.assert(
      fc.property(
        fc.constantFrom("msg", "level2", "deep", "name", "stack", "own"),
        fc.string({ unit: codePoint }),
        (place, noise) => {
          const text = forged + noise;
          const fields = {
            msg: { msg: text },
            level2: { a: text },
            deep: { a: { b: text } },
            name: { [text]: 1 },
            stack: { a: { stack: text } },
            own: { stack: text },
          };
          const lines = pretty(fields[place as keyof typeof fields]).split("\n");
          expect(lines[0]).toMatch(/^03:04:05\.678 INFO {2}/);
          for (const below of lines.slice(1)) expect(below).toMatch(/^ {4}/);
          // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
          expect(lines.join("")).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e]/);
        },
      ),
    );
  });
});
