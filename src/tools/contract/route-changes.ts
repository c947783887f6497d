import { isNothing } from "../../app/openapi/answers.ts";
import { canonical } from "../../app/openapi/canonical.ts";
import { defined, type JsonSchema } from "../../app/openapi/schema.ts";
import { isStricter } from "./access-strictness.ts";
import type { LockedKeyHeader, LockedRoute } from "./contract.ts";
import { type Change, partChanges, schemaChanges } from "./schema-changes.ts";
import type { SchemaNode } from "./shape.ts";

/** Clients do not see the names of parameters. */
export function routeKey({ method, path }: LockedRoute) {
  return `${method} ${path.replaceAll(/:[^/]+/g, ":")}`;
}

export function routeChanges(before: LockedRoute, after: LockedRoute, where: string): Change[] {
  const changes = (facts: readonly Fact[]) =>
    facts.flatMap(([holds, breaks, rule, detail]) =>
      holds ? [{ breaks: breaks ? ("client" as const) : undefined, where, rule, detail }] : [],
    );
  return [
    ...changes([...accessFacts(before, after), ...keyFacts(before, after)]),
    ...inputChanges(before, after, where),
    ...(before.output && after.output
      ? partChanges("output", before.output, after.output, `${where} output`)
      : []),
    ...changes([...outputFacts(before, after), ...errorFacts(before, after)]),
  ];
}

type Fact = readonly [holds: boolean, breaksClients: boolean, rule: string, detail: string];

function accessFacts(
  { access: was, body: had, signed }: LockedRoute,
  { access: is, body: has, signed: signs }: LockedRoute,
): Fact[] {
  const detail = `${canonical(was)} -> ${canonical(is)}`;
  const isRefused = isStricter(was, is);
  return [
    [isRefused, true, "access-stricter", detail],
    [!isRefused && isStricter(is, was), false, "access-widened", detail],
    [signed !== signs, true, "signature-changed", `${signed ?? "none"} -> ${signs ?? "none"}`],
    [had !== has, true, "body-changed", `${had} -> ${has}`],
  ];
}

/** Number of request headers that can carry a key. */
const headers: Readonly<Record<LockedKeyHeader, number>> = {
  none: 0,
  required: 1,
  "idempotency-key": 1,
  either: 2,
};

function keyFacts(before: LockedRoute, after: LockedRoute): Fact[] {
  const { key: was = "either", keptSeconds: kept = 300 } = before;
  const { key: is = "either", keptSeconds: keeps = 300 } = after;
  const [had, has] = [was !== "none", is !== "none"];
  const [wasRequired, isRequired] = [was === "required", is === "required"];
  // A claim contains the handler's name, so a retry after the release runs as a new write.
  const isForgotten = before.handler !== after.handler && before.body !== undefined && had && has;
  const isTaken = headers[is] > headers[was] && !wasRequired && !isRequired;
  const [change, seconds] = [`${was} -> ${is}`, `${kept} -> ${keeps} seconds`];
  return [
    [isForgotten, wasRequired, "keys-forgotten", `${before.handler} -> ${after.handler}`],
    [isRequired && !wasRequired, true, "key-required", change],
    [headers[is] < headers[was] && !isRequired, true, "key-ignored", change],
    [wasRequired && !isRequired && has, false, "key-optional", change],
    [isTaken, false, "key-taken", change],
    [keeps < kept && has, true, "key-kept-shorter", seconds],
    [keeps > kept && had, false, "key-kept-longer", seconds],
  ];
}

function inputChanges(before: LockedRoute, after: LockedRoute, where: string): readonly Change[] {
  const { input: was } = before;
  const { input: is } = after;
  if (is === undefined)
    return was === undefined ? [] : [{ where: `${where} input`, rule: "input-undeclared" }];
  const sent =
    was === undefined ? firstInput(after) : withNames(was, paramsOf(before), paramsOf(after));
  return schemaChanges("input", sent, is, (path) => `${where} ${inputPlace(path, after)}`);
}

/** Input that every client sends without a schema: the path's parameters that the first schema names. */
function firstInput(after: LockedRoute): SchemaNode {
  const { properties }: JsonSchema = Object(after.input);
  const names = paramsOf(after).filter((name) => Object.hasOwn(Object(properties), name));
  const parts = names.map((name) => {
    const { minLength }: JsonSchema = Object(Object(properties)[name]);
    return [name, { type: "string", ...(minLength === undefined ? {} : { minLength: 1 }) }];
  });
  return { type: "object", properties: Object.fromEntries(parts), required: names };
}

function withNames(input: SchemaNode, names: readonly string[], others: readonly string[]) {
  const { properties, required, ...rest }: JsonSchema = Object(input);
  if (canonical(names) === canonical(others) || properties === undefined) return input;
  const called = (name: string) => others[names.indexOf(name)] ?? name;
  const renamed = Object.entries(Object(properties)).map(([name, part]) => [called(name), part]);
  return defined({
    ...rest,
    properties: Object.fromEntries(renamed),
    required: Array.isArray(required) ? required.map((name) => called(String(name))) : undefined,
  });
}

function paramsOf({ path }: LockedRoute) {
  return [...path.matchAll(/:([^/]+)/g)].map(([, name = ""]) => name);
}

function inputPlace(path: string, route: LockedRoute) {
  const first = path.replace(/[.[].*$/s, "");
  if (first === "") return `input${path}`;
  if (paramsOf(route).includes(first)) return `path.${path}`;
  if (route.method === "GET") return `query.${path}`;
  return first === "body" ? path : `body.${path}`;
}

function outputFacts(before: LockedRoute, after: LockedRoute): readonly Fact[] {
  const [wasSaid, isSaid] = [before.output !== undefined, after.output !== undefined];
  const [was, is] = [statusesOf(before), statusesOf(after)];
  const left = was.filter((status) => is.includes(status));
  // Without declared statuses, clients must expect both 200 and 204.
  const gone =
    isUnsaid(before) && left.length > 0 ? [] : was.filter((status) => !left.includes(status));
  const added = isUnsaid(after) ? [] : is.filter((status) => !was.includes(status));
  const isOptional = gone.length === 0 && hasBody(before, was);
  return [
    [!wasSaid && isSaid, false, "output-declared", "a schema describes the response"],
    [wasSaid && !isSaid, true, "output-undeclared", "no schema describes the response"],
    [wasSaid && isSaid && before.stream !== after.stream, true, "output-stream", sending(after)],
    ...gone.map((status): Fact => [true, true, "status-removed", String(status)]),
    ...added.map(
      (status): Fact =>
        isOptional && isEmpty(status)
          ? [true, true, "output-became-optional", String(status)]
          : [true, false, "status-added", String(status)],
    ),
  ];
}

function sending({ stream }: LockedRoute) {
  return stream === undefined ? "sent whole" : `sent as ${stream}`;
}

function isUnsaid({ output, statuses }: LockedRoute) {
  return output === undefined && statuses === undefined;
}

function statusesOf({ output, statuses }: LockedRoute) {
  if (statuses !== undefined) return statuses;
  if (output === undefined) return [200, 204];
  return isNothing(output) ? [204] : [200];
}

function hasBody({ output }: LockedRoute, statuses: readonly number[]) {
  return output !== undefined && !isNothing(output) && !statuses.some(isEmpty);
}

function isEmpty(status: number) {
  return status === 204 || status === 205;
}

function errorFacts(
  { errors: was = {} }: LockedRoute,
  { errors: is = {} }: LockedRoute,
): readonly Fact[] {
  return [...new Set([...Object.keys(was), ...Object.keys(is)])].sort().flatMap((code) => {
    const [before, after] = [was, is].map((errors) =>
      Object.hasOwn(errors, code) ? errors[code] : undefined,
    );
    return [
      [before === undefined, false, "error-added", `${code} (${after})`],
      [after === undefined, false, "error-removed", `${code} (${before})`],
      [
        before !== undefined && after !== undefined && before !== after,
        true,
        "error-status-changed",
        `${code}: ${before} -> ${after}`,
      ],
    ] as const;
  });
}
