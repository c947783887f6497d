import { parseAst } from "rolldown/parseAst";
import { expect, test } from "vitest";
import { divide, type ModuleFacts } from "./chunks.ts";
import { hasTopLevelAwait } from "./top-level-await.ts";

const http = "/app/node_modules/keelson/dist/hosts/lambda-http/http-events.js";
const sdk = "/app/node_modules/keelson/dist/aws/clients/dynamodb-sdk.js";

/** Modules, with what they import by statements and by `import()`; an entry begins with a capital. */
function divided(
  modules: Readonly<
    Record<string, readonly [now: readonly string[], later: readonly string[], code?: string]>
  >,
) {
  const facts = (id: string): ModuleFacts | null => {
    const found = modules[id];
    return found === undefined
      ? null
      : {
          isEntry: /^[A-Z]/.test(id),
          importedIds: found[0],
          dynamicallyImportedIds: found[1],
        };
  };
  const { start, lazy } = divide(Object.keys(modules), facts, (id) =>
    hasTopLevelAwait(modules[id]?.[2], parseAst),
  );
  return Object.fromEntries(Object.keys(modules).map((id) => [id, start(id) ?? lazy(id)]));
}

test("puts an entry's static imports in one file and the first request's imports in another", () => {
  const chunks = divided({
    A: [
      ["b", "outside"],
      [http, "later"],
    ],
    b: [[], []],
    [http]: [["b", "c"], [sdk]],
    [sdk]: [["c", "d"], []],
    c: [[], []],
    d: [[], []],
    later: [["c"], []],
  });

  expect(chunks).toEqual({
    A: "start",
    b: "start",
    [http]: "first",
    [sdk]: undefined,
    c: "first",
    d: "sdk",
    later: undefined,
  });
});

test("entries share a file for their common imports and have one file each for the rest", () => {
  const chunks = divided({
    A: [["b", "both"], []],
    b: [[], []],
    C: [["both"], []],
    both: [[], []],
  });

  expect(chunks).toEqual({ A: "start", b: "start", C: "start2", both: "start3" });
});

test.each([
  "await run();",
  "export const it = await run();",
  "\nlet { a, b } =\n  await run();",
  "try {\n  await run();\n} catch {}",
  "if (x) await run();",
  "const x = (await run()).y;",
  "const a = 1, b = await run();",
  "for await (const x of run()) {}",
  "await using x = run();",
  "class A extends (await run()) {}",
  "const x = <T,>(y: T) => y;\nawait run();",
  "const x = <div>{await run()}</div>;",
])("an entry that waits at its top level keeps a file of its own: %j", (code) => {
  const chunks = divided({ A: [["b"], ["later"], code], b: [[], []], later: [["b"], []] });

  expect(chunks).toEqual({ A: undefined, b: "start", later: undefined });
});

test("a module that waits at its top level, and those that import it, are in no start file", () => {
  const chunks = divided({
    A: [["m", "b"], []],
    m: [["b"], ["later"], "await run();"],
    b: [[], []],
    later: [["b"], []],
  });

  expect(chunks).toEqual({ A: undefined, m: undefined, b: "start", later: undefined });
});

test("a module that waits at its top level is not in the file of the first request either", () => {
  const chunks = divided({
    A: [["m"], [http]],
    m: [[], [], "await run();"],
    [http]: [["m"], []],
  });

  expect(chunks).toEqual({ A: undefined, m: undefined, [http]: "first" });
});

test.each([
  "const later = async () => await run();",
  "async function later() {\nawait run();\n}",
  "class A {\n  async later() {\n    for await (const x of run()) {}\n  }\n}",
  "const text = `\nawait run();\n`;",
  'say("await run();");',
  '{ "json": "await" }',
])("an entry that does not wait at its top level shares the start file: %j", (code) => {
  expect(divided({ A: [["b"], [], code], b: [[], []] })).toEqual({ A: "start", b: "start" });
});

test("leaves a module out of start files if one entry imports it statically and another dynamically", () => {
  const chunks = divided({ A: [["sometimes"], []], C: [[], ["sometimes"]], sometimes: [[], []] });

  expect(chunks).toEqual({ A: "start", C: "start2", sometimes: undefined });
});

test("leaves a first-request module unassigned if only some of the entries import it statically", () => {
  const chunks = divided({ A: [["c"], [http]], C: [[], [http]], [http]: [["c"], []], c: [[], []] });

  expect(chunks).toEqual({ A: "start", C: "start2", [http]: "first", c: undefined });
});

test("recognises keelson's modules by their folder, so an application's file may have the same name", () => {
  const chunks = divided({
    A: [[], ["/app/hosts/lambda-http/http-events.ts"]],
    "/app/hosts/lambda-http/http-events.ts": [[], []],
  });

  expect(chunks["/app/hosts/lambda-http/http-events.ts"]).toBeUndefined();
});
