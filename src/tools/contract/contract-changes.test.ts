import { describe, expect, test } from "vitest";
import { type Contract, type LockedRoute, readContract } from "./contract.ts";
import { contractChanges } from "./contract-changes.ts";
import { schemaChanges } from "./schema-changes.ts";

const none: Contract = {
  format: 1,
  routes: [],
  events: [],
  jobs: [],
  channels: [],
  consumers: [],
  schedules: [],
  keys: [],
};
const route: LockedRoute = {
  method: "POST",
  path: "/mugs/:id",
  handler: "a.b.c",
  access: "tenant",
  body: "json",
  key: "either",
};
const text = { type: "string" };
const object = (properties: object, more: object = {}) => ({ type: "object", properties, ...more });
const listed = (before: Partial<Contract>, after: Partial<Contract>) =>
  contractChanges({ ...none, ...before }, { ...none, ...after }).map(
    ({ breaks = "-", where, rule }) => `${breaks} ${where} ${rule}`,
  );
const changed = (before: object, after: object) =>
  contractChanges(
    { ...none, routes: [{ ...route, ...before }] },
    { ...none, routes: [{ ...route, ...after }] },
  ).map(
    ({ breaks = "-", where, rule, detail = "" }) =>
      `${breaks} ${where.replace("POST /mugs/:id", "it")} ${rule}${detail && ` ${detail}`}`,
  );

describe("a change of a route:", () => {
  test.each<[string, object, object, string[]]>([
    ["nothing", {}, {}, []],
    ["another handler", {}, { handler: "a.b.d" }, ["- it keys-forgotten a.b.c -> a.b.d"]],
    [
      "another handler, where keys last",
      { key: "required", keptSeconds: 86_400 },
      { key: "required", keptSeconds: 86_400, handler: "a.b.d" },
      ["client it keys-forgotten a.b.c -> a.b.d"],
    ],
    [
      "another handler, whose keys nobody kept",
      { key: "none" },
      { key: "none", handler: "a.b.d" },
      [],
    ],
    [
      "another handler, which keeps no keys",
      {},
      { key: "none", handler: "a.b.d" },
      ["client it key-ignored either -> none"],
    ],
    [
      "another handler of a query",
      { body: undefined, key: undefined },
      { body: undefined, key: undefined, handler: "a.b.d" },
      [],
    ],
    ["a stricter rule", {}, { access: "admin" }, ['client it access-stricter "tenant" -> "admin"']],
    ["a wider rule", {}, { access: "everyone" }, ['- it access-widened "tenant" -> "everyone"']],
    ["another body", {}, { body: "form" }, ["client it body-changed json -> form"]],
    [
      "a key that has to be there",
      {},
      { key: "required", keptSeconds: 300 },
      ["client it key-required either -> required"],
    ],
    [
      "a key that need not be there",
      { key: "required" },
      { key: "either" },
      ["- it key-optional required -> either"],
    ],
    [
      "no key after one",
      { key: "required" },
      { key: "none" },
      ["client it key-ignored required -> none"],
    ],
    [
      "no request ID",
      { key: "either" },
      { key: "idempotency-key" },
      ["client it key-ignored either -> idempotency-key"],
    ],
    [
      "a request ID, too",
      { key: "idempotency-key" },
      { key: "either" },
      ["- it key-taken idempotency-key -> either"],
    ],
    [
      "a first key",
      { key: "none" },
      { key: "idempotency-key" },
      ["- it key-taken none -> idempotency-key"],
    ],
    [
      "no key, of none that there was",
      { key: "none" },
      { key: "required" },
      ["client it key-required none -> required"],
    ],
    ["the same key", { key: "required" }, { key: "required" }, []],
    [
      "a shorter time",
      { key: "required", keptSeconds: 600 },
      { key: "required", keptSeconds: 300 },
      ["client it key-kept-shorter 600 -> 300 seconds"],
    ],
    [
      "a longer time",
      { key: "required", keptSeconds: 300 },
      { key: "required", keptSeconds: 600 },
      ["- it key-kept-longer 300 -> 600 seconds"],
    ],
    [
      "no time without a key",
      { key: "required", keptSeconds: 600 },
      { key: "none" },
      ["client it key-ignored required -> none"],
    ],
    [
      "a time with the first key",
      { key: "none" },
      { key: "required", keptSeconds: 600 },
      ["client it key-required none -> required"],
    ],
    [
      "a query, which has no key",
      { body: undefined, key: undefined },
      { body: undefined, key: undefined },
      [],
    ],
    [
      "a first input",
      {},
      { input: object({ a: text }) },
      ["- it body.a input-property-added not there -> there"],
    ],
    [
      "a first input that asks",
      {},
      { input: object({ a: text }, { required: ["a"] }) },
      ["client it body.a input-required-added not there -> required"],
    ],
    [
      "a first input of the parameter, which every client sends",
      {},
      { input: object({ id: { ...text, minLength: 1 } }, { required: ["id"] }) },
      [],
    ],
    [
      "a first input that narrows the parameter",
      {},
      { input: object({ id: { ...text, maxLength: 2 } }, { required: ["id"] }) },
      ["client it path.id input-max-length-lowered none -> 2"],
    ],
    ["no input", { input: object({ a: text }) }, {}, ["- it input input-undeclared"]],
    [
      "an input of a parameter",
      { input: object({ id: text }) },
      { input: object({ id: { ...text, maxLength: 2 } }) },
      ["client it path.id input-max-length-lowered none -> 2"],
    ],
    [
      "an input that is the body",
      { input: object({ body: text }) },
      { input: object({ body: { ...text, maxLength: 2 } }) },
      ["client it body input-max-length-lowered none -> 2"],
    ],
    [
      "an input of another type",
      { input: object({}) },
      { input: text },
      ["client it input input-type-changed object -> string"],
    ],
    [
      "a parameter by another name",
      { path: "/mugs/:mug", input: object({ mug: text, a: text }, { required: ["mug", "a"] }) },
      { input: object({ id: text, a: text }, { required: ["id", "a"] }) },
      [],
    ],
    [
      "a parameter by another name, without a schema of it",
      { path: "/mugs/:mug", input: { anyOf: [{}] } },
      { input: { anyOf: [{}], title: "A" } },
      [],
    ],
    [
      "a parameter by another name, which need not be there",
      { path: "/mugs/:mug", input: object({ mug: text }) },
      { input: object({ id: text }) },
      [],
    ],
    [
      "a first output",
      {},
      { output: text },
      ["- it output-declared a schema describes the response"],
    ],
    [
      "no output",
      { output: text },
      {},
      ["client it output-undeclared no schema describes the response"],
    ],
    [
      "an output that streams",
      { output: text },
      { output: text, stream: "sse" },
      ["client it output-stream sent as sse"],
    ],
    [
      "an output that no longer streams",
      { output: text, stream: "jsonLines" },
      { output: text },
      ["client it output-stream sent whole"],
    ],
    [
      "a first output, which streams",
      {},
      { output: text, stream: "jsonLines" },
      ["- it output-declared a schema describes the response"],
    ],
    [
      "another output",
      { output: text },
      { output: { type: "number" } },
      ["client it output output-type-changed string -> number"],
    ],
    [
      "another item",
      { output: { type: "array", items: text } },
      { output: { type: "array", items: {} } },
      [
        "client it output[] output-type-widened string -> null or boolean or number or string or array or object",
      ],
    ],
    [
      "another status",
      { statuses: [200] },
      { statuses: [201] },
      ["client it status-removed 200", "- it status-added 201"],
    ],
    [
      "a first status, which a result had not",
      {},
      { statuses: [201] },
      ["client it status-removed 200", "client it status-removed 204", "- it status-added 201"],
    ],
    ["a first status, which a result may have had", {}, { statuses: [200] }, []],
    [
      "a first status of what had an output",
      { output: text },
      { output: text, statuses: [200] },
      [],
    ],
    [
      "another status of what had an output",
      { output: text },
      { output: text, statuses: [201] },
      ["client it status-removed 200", "- it status-added 201"],
    ],
    [
      "another status of what had no answer",
      { output: { not: {} } },
      { output: { not: {} }, statuses: [200] },
      ["client it status-removed 204", "- it status-added 200"],
    ],
    [
      "an output that may be nothing",
      { output: text },
      { output: text, statuses: [200, 204] },
      ["client it output-became-optional 204"],
    ],
    [
      "an answer without a body where there always was one",
      { output: text, statuses: [200] },
      { output: text, statuses: [200, 205] },
      ["client it output-became-optional 205"],
    ],
    [
      "a further answer without a body",
      { output: text, statuses: [200, 204] },
      { output: text, statuses: [200, 204, 205] },
      ["- it status-added 205"],
    ],
    [
      "an answer that is always there",
      { output: text, statuses: [200, 204] },
      { output: text },
      ["client it status-removed 204"],
    ],
    [
      "a further status with a body",
      { output: text },
      { output: text, statuses: [200, 202] },
      ["- it status-added 202"],
    ],
    ["the usual status", { statuses: [200] }, {}, []],
    ["no status", { statuses: [201] }, {}, ["client it status-removed 201"]],
    ["a first error", {}, { errors: { gone: 410 } }, ["- it error-added gone (410)"]],
    ["an error less", { errors: { gone: 410 } }, {}, ["- it error-removed gone (410)"]],
    [
      "an error of another status",
      { errors: { gone: 410 } },
      { errors: { gone: 404 } },
      ["client it error-status-changed gone: 410 -> 404"],
    ],
    ["the same errors", { errors: { b: 409, a: 410 } }, { errors: { a: 410, b: 409 } }, []],
  ])("%s", (_name, before, after, expected) => {
    expect(changed(before, after)).toEqual(expected);
  });

  test("a change in an answer's items is reported at their path", () => {
    const found = changed(
      { output: { type: "array", items: text } },
      { output: { type: "array", items: { ...text, format: "email" } } },
    );
    expect(found).toEqual(["- it output[] output-format-added not there -> email"]);
  });
});

test("lists each added or removed declaration by its identity", () => {
  const one = {
    routes: [{ ...route, method: "GET" }],
    events: [{ type: "mug.made", payload: {} }],
    jobs: [{ name: "mugs.mug.wash", input: {} }],
    channels: [{ name: "mail", message: {} }],
    consumers: [{ name: "mugs.mug.count", event: "mug.made" }],
    schedules: [{ name: "mugs.mug.daily", cron: "* * * * *", timeZone: "UTC", missed: "once" }],
  };
  expect(listed(one, {})).toEqual([
    "client GET /mugs/:id route-removed",
    "consumer channel mail channel-removed",
    "consumer event mug.made event-removed",
    "consumer job mugs.mug.wash job-removed",
    "- consumer mugs.mug.count of mug.made consumer-removed",
    "- schedule mugs.mug.daily schedule-removed",
  ]);
  expect(listed({}, one).map((line) => line.replace(/ .* /, " "))).toEqual([
    "- route-added",
    "- channel-added",
    "- consumer-added",
    "- event-added",
    "- job-added",
    "- schedule-added",
  ]);
  expect(listed(one, one)).toEqual([]);
});

test("lists a change in how long an event is kept", () => {
  const kept = (days?: number | "forever") => ({
    events: [{ type: "mug.made", payload: {}, ...(days === undefined ? {} : { kept: days }) }],
  });
  expect(listed(kept(30), kept())).toEqual(["- event mug.made event-kept-changed"]);
  expect(listed(kept(), kept("forever"))).toEqual(["- event mug.made event-kept-changed"]);
  expect(
    listed(
      { events: [{ type: "a", payload: { type: "array", items: text } }] },
      { events: [{ type: "a", payload: { type: "array", items: { ...text, minLength: 1 } } }] },
    ),
  ).toEqual(["consumer event a payload[] payload-min-length-raised"]);
});

describe("the rule for a change of a schema:", () => {
  const number = { type: "number" };
  test.each<[object | boolean, object | boolean, string, string]>([
    [number, { ...number, minimum: 1 }, "input-minimum-raised", "output-minimum-raised -"],
    [{ ...number, minimum: 1 }, number, "input-minimum-lowered -", "output-minimum-lowered"],
    [{ ...text, maxLength: 1 }, text, "input-max-length-raised -", "output-max-length-raised"],
    [
      { type: "array", minItems: 1 },
      { type: "array" },
      "input-min-items-lowered -",
      "output-min-items-lowered",
    ],
    [
      { type: "array" },
      { type: "array", maxItems: 1 },
      "input-max-items-lowered",
      "output-max-items-lowered -",
    ],
    [
      object({}),
      object({}, { minProperties: 1 }),
      "input-min-properties-raised",
      "output-min-properties-raised -",
    ],
    [
      object({}, { maxProperties: 1 }),
      object({}),
      "input-max-properties-raised -",
      "output-max-properties-raised",
    ],
    [number, { ...number, multipleOf: 2 }, "input-multiple-of-added", "output-multiple-of-added -"],
    [
      { ...number, multipleOf: 2 },
      number,
      "input-multiple-of-removed -",
      "output-multiple-of-removed",
    ],
    [
      { type: "array" },
      { type: "array", uniqueItems: true },
      "input-unique-items-added",
      "output-unique-items-added -",
    ],
    [
      { ...text, format: "uuid" },
      { ...text, format: "email" },
      "input-format-changed",
      "output-format-changed",
    ],
    [text, { enum: ["a"] }, "input-enum-added", "output-enum-added -"],
    [{ enum: ["a"] }, text, "input-enum-removed -", "output-enum-removed"],
    [{ type: ["string", "number"] }, text, "input-type-narrowed", "output-type-narrowed -"],
    [
      object({}, { additionalProperties: text }),
      object({}, { additionalProperties: text, propertyNames: { maxLength: 1 } }),
      "input-property-names-narrowed",
      "output-property-names-narrowed -",
    ],
    [object({}, { additionalProperties: false }), object({}), "input-unnamed-allowed -", ""],
    [
      object({ a: text }),
      object({}, { additionalProperties: false }),
      "input-property-removed; input-unnamed-refused",
      "output-property-removed; output-unnamed-refused -",
    ],
    [
      { ...text, not: { const: "a" } },
      { ...text, not: { const: "b" } },
      "input-cannot-tell",
      "output-cannot-tell",
    ],
    [
      object({ a: { type: "array", items: { ...text, default: "x" } } }),
      object({ a: { type: "array", items: text } }),
      "input-default-changed -",
      "output-default-changed -",
    ],
    [
      object({ a: { ...text, default: "x" } }),
      object({ a: { ...text, default: "y" } }),
      "input-default-changed -",
      "output-default-changed -",
    ],
    [text, { ...text, default: "x" }, "input-default-changed -", "output-default-changed -"],
  ])("%j -> %j", (before, after, input, output) => {
    const said = (role: "input" | "output") =>
      schemaChanges(role, before as never, after as never, (path) => path)
        .map(({ breaks, rule }) => `${rule}${breaks === undefined ? " -" : ""}`)
        .sort()
        .join("; ");
    expect([said("input"), said("output")]).toEqual([input, output]);
  });

  test("a job may lose a property, but an event may not", () => {
    const [before, after] = [object({ a: text, b: text }), object({ a: text })];
    const breaks = (role: "job" | "message" | "payload") =>
      schemaChanges(role, before, after, (path) => path);
    expect(breaks("job")).toMatchObject([{ where: "b", rule: "job-property-removed" }]);
    expect(breaks("message")).toMatchObject([{ where: "b", rule: "message-property-removed" }]);
    expect([...breaks("job"), ...breaks("message")].map(({ breaks: broken }) => broken)).toEqual([
      undefined,
      undefined,
    ]);
    expect(breaks("payload")).toMatchObject([
      { where: "b", rule: "payload-property-removed", breaks: "consumer" },
    ]);
  });
});

test("refuses a lock whose entries lack required members", () => {
  expect(() => readContract(JSON.stringify({ ...none, keys: [{}] }))).toThrow(
    "its keys are not a list",
  );
  expect(() => readContract("null")).toThrow("it has no format");
  expect(readContract(JSON.stringify(none))).toEqual(none);
});
