import { isNothing } from "../../app/openapi/answers.ts";
import { canonical } from "../../app/openapi/canonical.ts";
import { isStricter } from "./access-strictness.ts";
import { type LockedKeyHeader, type LockedRoute, routeText } from "./contract.ts";
import { type Change, schemaChanges } from "./schema-changes.ts";
import type { SchemaNode } from "./shape.ts";

/** Returns the identity of a route for clients. Parameter names do not count. */
export function routeKey({ method, path }: LockedRoute): string {
  return `${method} ${path.replaceAll(/:[^/]+/g, ":")}`;
}

export function routeChanges(before: LockedRoute, after: LockedRoute): readonly Change[] {
  const where = routeText(after);
  const client = (rule: string, detail: string): Change => ({
    breaks: "client",
    where,
    rule,
    detail,
  });
  const listed = (rule: string, detail: string): Change => ({ where, rule, detail });
  return [
    ...accessChanges(before, after, client, listed),
    ...(before.body === after.body
      ? []
      : [client("body-changed", `${before.body} -> ${after.body}`)]),
    ...keyChanges(before, after, client, listed),
    ...inputChanges(before, after),
    ...outputChanges(before, after, client, listed),
    ...statusChanges(before, after, client, listed),
    ...errorChanges(before, after, client, listed),
  ];
}

type Say = (rule: string, detail: string) => Change;

function accessChanges(
  { access: was }: LockedRoute,
  { access: is }: LockedRoute,
  client: Say,
  listed: Say,
): readonly Change[] {
  const detail = `${canonical(was)} -> ${canonical(is)}`;
  if (isStricter(was, is)) return [client("access-stricter", detail)];
  return isStricter(is, was) ? [listed("access-widened", detail)] : [];
}

const headers: Readonly<Record<LockedKeyHeader, number>> = {
  none: 0,
  required: 1,
  "idempotency-key": 1,
  either: 2,
};

function keyChanges(
  before: LockedRoute,
  after: LockedRoute,
  client: Say,
  listed: Say,
): readonly Change[] {
  const { key: was = "either", keptSeconds: kept = 300 } = before;
  const { key: is = "either", keptSeconds: keeps = 300 } = after;
  const isShorter = keeps < kept && is !== "none";
  // A claim contains the handler's name, so a retry after the release runs as a new write.
  const isForgotten =
    before.handler !== after.handler &&
    before.body !== undefined &&
    was !== "none" &&
    is !== "none";
  const forgotten = was === "required" ? client : listed;
  return [
    ...(isForgotten ? [forgotten("keys-forgotten", `${before.handler} -> ${after.handler}`)] : []),
    ...(is === "required" && was !== "required" ? [client("key-required", `${was} -> ${is}`)] : []),
    ...(headers[is] < headers[was] && is !== "required"
      ? [client("key-ignored", `${was} -> ${is}`)]
      : []),
    ...(was === "required" && is !== "required" && is !== "none"
      ? [listed("key-optional", `${was} -> ${is}`)]
      : []),
    ...(headers[is] > headers[was] && was !== "required" && is !== "required"
      ? [listed("key-taken", `${was} -> ${is}`)]
      : []),
    ...(isShorter ? [client("key-kept-shorter", `${kept} -> ${keeps} seconds`)] : []),
    ...(keeps > kept && was !== "none"
      ? [listed("key-kept-longer", `${kept} -> ${keeps} seconds`)]
      : []),
  ];
}

function inputChanges(before: LockedRoute, after: LockedRoute): readonly Change[] {
  const { input: was = { type: "object" } } = before;
  const { input: is } = after;
  const where = routeText(after);
  if (is === undefined)
    return before.input === undefined
      ? []
      : [{ where: `${where} input`, rule: "input-undeclared" }];
  const renamed = withNames(was, paramsOf(before), paramsOf(after));
  return schemaChanges("input", renamed, is, (path) => `${where} ${inputPlace(path, after)}`);
}

function withNames(
  input: SchemaNode,
  names: readonly string[],
  others: readonly string[],
): SchemaNode {
  // Safe: any member of an object can be read.
  const { properties, required, ...rest } = Object(input) as Readonly<Record<string, unknown>>;
  if (canonical(names) === canonical(others) || properties === undefined) return input;
  const called = (name: string) => others[names.indexOf(name)] ?? name;
  return {
    ...rest,
    properties: Object.fromEntries(
      Object.entries(Object(properties)).map(([name, part]) => [called(name), part]),
    ),
    ...(Array.isArray(required) ? { required: required.map((name) => called(String(name))) } : {}),
  };
}

function paramsOf({ path }: LockedRoute): readonly string[] {
  return [...path.matchAll(/:([^/]+)/g)].map(([, name = ""]) => name);
}

function inputPlace(path: string, route: LockedRoute): string {
  const first = path.replace(/[.[].*$/s, "");
  if (first === "") return `input${path}`;
  if (paramsOf(route).includes(first)) return `path.${path}`;
  if (route.method === "GET") return `query.${path}`;
  return first === "body" ? path : `body.${path}`;
}

function outputChanges(
  before: LockedRoute,
  after: LockedRoute,
  client: Say,
  listed: Say,
): readonly Change[] {
  const { output: was } = before;
  const { output: is } = after;
  if (was === undefined)
    return is === undefined ? [] : [listed("output-declared", "a schema says what is answered")];
  if (is === undefined) return [client("output-undeclared", "no schema says what is answered")];
  return schemaChanges(
    "output",
    was,
    is,
    (path) =>
      `${routeText(after)} output${path === "" || path.startsWith("[") ? path : `.${path}`}`,
  );
}

function statusChanges(
  before: LockedRoute,
  after: LockedRoute,
  client: Say,
  listed: Say,
): readonly Change[] {
  const [was, is] = [statusesOf(before), statusesOf(after)];
  const left = was.filter((status) => is.includes(status));
  // Clients could not know which of the two statuses to expect.
  const gone =
    isUnsaid(before) && left.length > 0 ? [] : was.filter((status) => !left.includes(status));
  const added = isUnsaid(after) ? [] : is.filter((status) => !was.includes(status));
  const isOptional = gone.length === 0 && hasBody(before, was);
  return [
    ...gone.map((status) => client("status-removed", String(status))),
    ...added.map((status) =>
      isOptional && isEmpty(status)
        ? client("output-became-optional", String(status))
        : listed("status-added", String(status)),
    ),
  ];
}

function isUnsaid({ output, statuses }: LockedRoute): boolean {
  return output === undefined && statuses === undefined;
}

function statusesOf({ output, statuses }: LockedRoute): readonly number[] {
  if (statuses !== undefined) return statuses;
  if (output === undefined) return [200, 204];
  return isNothing(output) ? [204] : [200];
}

function hasBody({ output }: LockedRoute, statuses: readonly number[]): boolean {
  return output !== undefined && !isNothing(output) && !statuses.some(isEmpty);
}

function isEmpty(status: number): boolean {
  return status === 204 || status === 205;
}

function errorChanges(
  { errors: was = {} }: LockedRoute,
  { errors: is = {} }: LockedRoute,
  client: Say,
  listed: Say,
): readonly Change[] {
  return [...new Set([...Object.keys(was), ...Object.keys(is)])].sort().flatMap((code) => {
    const [before, after] = [was, is].map((errors) =>
      Object.hasOwn(errors, code) ? errors[code] : undefined,
    );
    if (before === after) return [];
    if (before === undefined) return [listed("error-added", `${code} (${after})`)];
    if (after === undefined) return [listed("error-removed", `${code} (${before})`)];
    return [client("error-status-changed", `${code}: ${before} -> ${after}`)];
  });
}
