import type { StandardSchemaV1 } from "@standard-schema/spec";
import { type ErrorCode, errorCodes } from "../../base/errors/codes.ts";
import { type RawOptions, type Report, unknownOptions } from "../../base/errors/declared.ts";
import { isAccessRule } from "../../base/identity/access.ts";
import type { KeyDeclaration, RegisteredConfigKey } from "../../parts/config/declare/key.ts";
import { configKeyId } from "../../parts/config/declare/key-id.ts";
import type { BodyKind } from "../../parts/http/message.ts";
import { ownHeaders } from "../../parts/http/message.ts";
import { parseRoute, reservedPath } from "../../parts/http/route.ts";
import { isWriteOnce, onceForms } from "../../parts/once/once-by.ts";
import type { HandlerDeclaration } from "./handler.ts";

/** Registers the keys of one `r.config` call. Boot checks the rules of each key. */
export function configKeys(
  feature: string,
  options: RawOptions,
  report: Report,
): RegisteredConfigKey[] {
  unknownOptions("r.config", options, ["keys"], report);
  const keys = options?.["keys"];
  if (typeof keys !== "object" || keys === null) {
    report({
      key: "r.config",
      rule: "config-keys",
      message: "`keys` is not an object",
      fix: "pass { keys: { <name>: createTenantConfig(...) } }",
    });
    return [];
  }
  return Object.entries(keys).map(([name, declaration]) => ({
    id: configKeyId(feature, name),
    feature,
    name,
    definition: (declaration as KeyDeclaration<unknown>)?.definition,
  }));
}

const methods = { query: ["GET"], write: ["POST", "PUT", "PATCH", "DELETE"] } as const;
const writeOptions = ["body", "once", "replay", "replayHeaders"];
const bodyKinds: readonly unknown[] = [
  "json",
  "form",
  "text",
  "bytes",
] satisfies readonly BodyKind[];

export function handler(
  kind: "query" | "write",
  feature: string,
  name: string,
  options: RawOptions,
  report: Report,
): HandlerDeclaration {
  const fullName = `${feature}.${name}`;
  const problem = (rule: string, message: string, fix: string) =>
    report({ key: fullName, rule, message, fix });
  const given = options ?? {};
  unknownOptions(
    fullName,
    given,
    [
      ...["input", "output", "errors", "status", "handler", "route", "access"],
      ...(kind === "write" ? writeOptions : []),
    ],
    report,
  );
  if (typeof name !== "string" || !/^[a-z][a-z0-9-]{0,62}\.[a-z][a-z0-9-]{0,62}$/.test(name)) {
    problem(
      "handler-name",
      `name ${JSON.stringify(name)} is not <entity>.<operation>`,
      'use two kebab-case words, for example "file.create"',
    );
  }
  for (const schema of ["input", "output"]) {
    if (given[schema] !== undefined && !isStandardSchema(given[schema])) {
      problem(
        "schema",
        `\`${schema}\` is not a Standard Schema`,
        "pass a schema of zod, valibot or arktype",
      );
    }
  }
  if (typeof given["handler"] !== "function")
    problem("handler", "`handler` is not a function", "pass handler: async (ctx, input) => ...");
  if (given["body"] !== undefined && !bodyKinds.includes(given["body"])) {
    problem(
      "body-kind",
      `\`body\` is ${JSON.stringify(given["body"])}`,
      "use json, form, text or bytes",
    );
  }
  errorProblems(given["errors"], problem);
  const statuses: readonly unknown[] = [given["status"] ?? []].flat();
  if (given["status"] !== undefined && !areSuccesses(statuses)) {
    problem(
      "status",
      "`status` is none of an answer that succeeds",
      "use one from 200 to 399, or a list of them",
    );
  }
  routeProblems(kind, given, problem);
  repeatProblems(given, problem);
  return {
    kind,
    feature,
    name: fullName,
    // Safe from here on: wrong types are already reported, and a server with problems is never
    // built.
    input: given["input"] as StandardSchemaV1 | undefined,
    output: given["output"] as StandardSchemaV1 | undefined,
    errors: Object.freeze({ ...(given["errors"] as HandlerDeclaration["errors"]) }),
    status: statuses.length === 0 ? undefined : (statuses as readonly number[]),
    route: given["route"] as string | undefined,
    access: given["access"] as HandlerDeclaration["access"],
    body: (given["body"] as BodyKind | undefined) ?? "json",
    once: given["once"] as HandlerDeclaration["once"],
    replay: given["replay"] as HandlerDeclaration["replay"],
    replayHeaders: [given["replayHeaders"] ?? []].flat().map((name) => String(name).toLowerCase()),
    run: given["handler"] as HandlerDeclaration["run"],
  };
}

function errorProblems(
  errors: unknown,
  problem: (rule: string, message: string, fix: string) => void,
): void {
  if (errors === undefined) return;
  if (typeof errors !== "object" || errors === null || Array.isArray(errors)) {
    problem("errors", "`errors` is not an object", "pass statuses by code: { out_of_stock: 409 }");
    return;
  }
  for (const [code, status] of Object.entries(errors)) {
    const own = Object.hasOwn(errorCodes, code) ? errorCodes[code as ErrorCode] : status; // safe: `hasOwn` checked it
    const isError = Number.isInteger(status) && status >= 400 && status <= 599;
    if (isError && own === status && /^(?=.{1,100}$)[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(code))
      continue;
    const isOwn = own !== status;
    problem(
      "errors",
      `${JSON.stringify(code.slice(0, 100))} of \`errors\` ${isOwn ? "is keelson's own" : "is no code with the status of an error"}`,
      isOwn ? `use ${own}, or another code` : "use snake case, and a status from 400 to 599",
    );
  }
}

function areSuccesses(statuses: readonly unknown[]): boolean {
  return (
    statuses.length > 0 &&
    statuses.every((status) => Number.isInteger(status) && /^[23]..$/.test(String(status)))
  );
}

function repeatProblems(
  options: RawOptions,
  problem: (rule: string, message: string, fix: string) => void,
): void {
  const { once, replay, replayHeaders } = options;
  if (once !== undefined && !isWriteOnce(once)) {
    problem("once", `\`once\` is ${JSON.stringify(once)}`, `use ${onceForms}`);
  }
  if (replay !== undefined && replay !== "encrypted") {
    problem(
      "replay",
      `\`replay\` is ${JSON.stringify(replay)}`,
      'use "encrypted", or leave it out',
    );
  }
  if (replayHeaders === undefined) return;
  const isList =
    Array.isArray(replayHeaders) &&
    replayHeaders.every((name) => typeof name === "string" && name !== "");
  if (!isList || replayHeaders.some((name) => ownHeaders.includes(name.toLowerCase()))) {
    problem(
      "replay-headers",
      "`replayHeaders` is not a list of headers that a reply can set",
      "name them, without Set-Cookie",
    );
  }
}

function routeProblems(
  kind: "query" | "write",
  options: RawOptions,
  problem: (rule: string, message: string, fix: string) => void,
): void {
  const { route, access } = options;
  if (route === undefined) {
    if (access !== undefined)
      problem(
        "access-without-route",
        "`access` is set without a `route`",
        "add the route, or leave `access` out",
      );
    if (options["body"] !== undefined)
      problem(
        "body-without-route",
        "`body` is set without a `route`",
        "add the route, or leave `body` out",
      );
    return;
  }
  if (access === undefined) {
    problem(
      "access-missing",
      `route ${JSON.stringify(route)} has no \`access\``,
      "say who may call it, for example access.authenticated",
    );
  } else if (!isAccessRule(access)) {
    problem(
      "access-rule",
      "`access` is not an access rule",
      'use a rule of `access`, for example access.roles("editor")',
    );
  }
  const parsed = parseRoute(route as string);
  if ("problem" in parsed) {
    problem("route", parsed.problem, parsed.fix);
    return;
  }
  const allowed: readonly string[] = methods[kind];
  if (!allowed.includes(parsed.method)) {
    problem("route-method", `a ${kind} cannot be ${parsed.method}`, `use ${allowed.join(", ")}`);
  }
  if (reservedPath(parsed.pattern)) {
    problem(
      "route-reserved",
      `path ${parsed.pattern} is reserved for keelson's own routes`,
      "choose another first segment",
    );
  }
}

export function isStandardSchema(value: unknown): value is StandardSchemaV1 {
  const isObject = (typeof value === "object" && value !== null) || typeof value === "function";
  return (
    isObject && typeof (value as Partial<StandardSchemaV1>)["~standard"]?.validate === "function"
  );
}
