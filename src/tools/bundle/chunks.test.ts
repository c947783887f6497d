import { expect, test } from "vitest";
import { divide, type ModuleFacts } from "./chunks.ts";

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
          code: found[2] ?? "",
          importedIds: found[0],
          dynamicallyImportedIds: found[1],
        };
  };
  const { start, lazy } = divide(Object.keys(modules), facts);
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

test.each(["await run();", "export const it = await run();", "\nlet { a, b } =\n  await run();"])(
  "an entry that waits at its top level keeps a file of its own: %j",
  (code) => {
    const chunks = divided({ A: [["b"], ["later"], code], b: [[], []], later: [["b"], []] });

    expect(chunks).toEqual({ A: undefined, b: "start", later: undefined });
  },
);

test.each(["const later = async () => await run();", "  await run();", 'say("await run();");'])(
  "an entry that waits in a function shares the start file: %j",
  (code) => {
    expect(divided({ A: [["b"], [], code], b: [[], []] })).toEqual({ A: "start", b: "start" });
  },
);

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
