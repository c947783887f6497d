import { type ErrorCode, errorCodes } from "../../base/errors/error-codes.ts";
import { isRecord, type Report, tableProblems } from "../../base/errors/option-table.ts";
import { isAccessRule } from "../../base/identity/access.ts";
import {
  configKeyId,
  type KeyDeclaration,
  type RegisteredConfigKey,
} from "../../parts/config/declare/key.ts";
import { type BodyLimits, limitChecks } from "../../parts/http/limits.ts";
import type { BodyKind } from "../../parts/http/message.ts";
import { areReplayHeaders } from "../../parts/http/own-headers.ts";
import { parseRoute, reservedPath } from "../../parts/http/route.ts";
import { streamFormOf } from "../../parts/http/streamed-output.ts";
import { rateLimitProblems } from "../../parts/limits/rate-limit.ts";
import { isOnce, onceForms } from "../../parts/once/once-by.ts";
import type { HandlerDeclaration } from "./handler.ts";
import {
  aFunction,
  aSchema,
  type Declaring,
  isTwoWords,
  knownOptions,
  type Problem,
  problemsOf,
  type Requirements,
  required,
  requireOptions,
} from "./requirements.ts";

/** Boot checks each definition. */
export function configKeys(
  feature: string,
  options: unknown,
  report: Report,
): RegisteredConfigKey[] {
  const { keys } = knownOptions("r.config", options, ["keys"], report);
  if (typeof keys !== "object" || keys === null) {
    const fix = "pass { keys: { <name>: createTenantConfig(...) } }";
    problemsOf("r.config", report)("config-keys", "`keys` is not an object", fix);
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
const queryOptions = [
  "input",
  "output",
  "errors",
  "status",
  "handler",
  "route",
  "access",
  "rateLimit",
];
const writeOptions = [...queryOptions, "body", "limits", "once", "replay", "replayHeaders"];
const bodyKinds: readonly unknown[] = [
  "json",
  "value",
  "form",
  "multipart",
  "text",
  "bytes",
] satisfies readonly BodyKind[];

const bodyLimits = { bodyBytes: limitChecks.bodyBytes };

const isJson = (value: unknown) => `is ${JSON.stringify(value)}`;

const handlerRequirements: Requirements = {
  input: aSchema,
  output: aSchema,
  handler: required(aFunction("pass handler: async (ctx, input) => ...")),
  body: {
    accepts: (kind: unknown) => bodyKinds.includes(kind),
    rule: "body-kind",
    wrong: isJson,
    fix: `use one of ${bodyKinds.join(", ")}`,
  },
  errors: {
    accepts: isRecord,
    rule: "errors",
    wrong: "is not an object",
    fix: "pass statuses by code: { out_of_stock: 409 }",
  },
};

const streamRequirements = (kind: HandlerDeclaration["kind"]): Requirements => ({
  output: {
    accepts: (output) => {
      const form = streamFormOf(output as HandlerDeclaration["output"]); // safe: only read
      return form === undefined || (kind === "query" && form.problem === undefined);
    },
    rule: "stream-output",
    wrong: (output) =>
      streamFormOf(output as HandlerDeclaration["output"])?.problem ?? // safe: only read
      "streams, and only a query can",
    fix: "pass sse(schema, { heartbeatSeconds: 15 }) or jsonLines(schema) to a query",
  },
});

const statusRequirements: Requirements = {
  status: {
    accepts: areSuccesses,
    rule: "status",
    wrong: "is not a status of success",
    fix: "use a status from 200 to 399, or a list of such statuses",
  },
};

const repeatRequirements: Requirements = {
  once: {
    accepts: (once: unknown) => isOnce(once),
    rule: "once",
    wrong: isJson,
    fix: `use ${onceForms}`,
  },
  replay: {
    accepts: (replay: unknown) => replay === "encrypted",
    rule: "replay",
    wrong: isJson,
    fix: 'use "encrypted", or leave it out',
  },
  replayHeaders: {
    accepts: areReplayHeaders,
    rule: "replay-headers",
    wrong: "is not a list of headers that a reply can set",
    fix: "name them, without Set-Cookie",
  },
};

export function handler(
  kind: HandlerDeclaration["kind"],
  { feature, report }: Declaring,
  name: string,
  options: unknown,
): HandlerDeclaration {
  const fullName = `${feature}.${name}`;
  const problem = problemsOf(fullName, report);
  const known = kind === "write" ? writeOptions : queryOptions;
  const given = knownOptions(fullName, options, known, report);
  if (!isTwoWords(name)) {
    const fix = 'use two kebab-case words, for example "file.create"';
    problem("handler-name", `name ${JSON.stringify(name)} is not <entity>.<operation>`, fix);
  }
  requireOptions(given, handlerRequirements, problem);
  requireOptions(given, streamRequirements(kind), problem);
  if (isRecord(given["errors"])) errorProblems(given["errors"], problem);
  requireOptions(given, statusRequirements, problem);
  tableProblems(`${fullName}.limits`, given["limits"], bodyLimits).map(report);
  rateLimitProblems(`${fullName}.rateLimit`, given["rateLimit"]).map(report);
  routeProblems(kind, given, problem);
  requireOptions(given, repeatRequirements, problem);
  // Safe cast: wrong types are reported, and a server with problems is never built.
  const declared = given as Partial<HandlerDeclaration>;
  const { input, output, errors, status, route, access, body = "json", once, replay } = declared;
  const { rateLimit } = declared;
  const { bodyBytes } = Object(given["limits"]) as BodyLimits; // safe: checked, as above
  const statuses = [status ?? []].flat();
  return {
    kind,
    feature,
    name: fullName,
    input,
    output,
    stream: streamFormOf(output),
    errors: Object.freeze({ ...errors }),
    status: statuses.length === 0 ? undefined : statuses,
    rateLimit,
    route,
    access,
    body,
    bodyBytes,
    once,
    replay,
    replayHeaders: [given["replayHeaders"] ?? []].flat().map((name) => String(name).toLowerCase()),
    run: given["handler"] as HandlerDeclaration["run"],
  };
}

function areSuccesses(given: unknown): boolean {
  const statuses = [given].flat();
  return (
    statuses.length > 0 &&
    statuses.every((status) => Number.isInteger(status) && /^[23]..$/.test(String(status)))
  );
}

function errorProblems(errors: Readonly<Record<string, unknown>>, problem: Problem): void {
  for (const [code, status] of Object.entries(errors)) {
    const shown = `${JSON.stringify(code.slice(0, 100))} of \`errors\``;
    const own = Object.hasOwn(errorCodes, code) ? errorCodes[code as ErrorCode] : status; // safe cast: `hasOwn` found the code
    const isError = Number.isInteger(status) && Number(status) >= 400 && Number(status) <= 599;
    if (own !== status) {
      problem("errors", `${shown} is keelson's own`, `use ${own}, or another code`);
    } else if (!isError || !/^(?=.{1,100}$)[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(code)) {
      const fix = "use snake case, and a status from 400 to 599";
      problem("errors", `${shown} is not a code with the status of an error`, fix);
    }
  }
}

function routeProblems(
  kind: HandlerDeclaration["kind"],
  given: Readonly<Record<string, unknown>>,
  problem: Problem,
): void {
  const { route, access } = given;
  if (route === undefined) {
    for (const option of (["access", "body", "limits"] as const).filter(
      (name) => given[name] !== undefined,
    )) {
      const message = `\`${option}\` is set without a \`route\``;
      problem(`${option}-without-route`, message, `add the route, or leave \`${option}\` out`);
    }
    if (given["rateLimit"] !== undefined) {
      const fix = "add the route, or take from a limit of r.rateLimit";
      problem("rate-limit-without-route", "`rateLimit` is set without a `route`", fix);
    }
    return;
  }
  if (access === undefined) {
    const fix = "add an access rule, for example access.authenticated";
    problem("access-missing", `route ${JSON.stringify(route)} has no \`access\``, fix);
  } else if (!isAccessRule(access)) {
    const fix = 'use a rule of `access`, for example access.roles("editor")';
    problem("access-rule", "`access` is not an access rule", fix);
  }
  const parsed = parseRoute(route as string);
  if ("problem" in parsed) {
    problem("route", parsed.problem, parsed.fix);
    return;
  }
  const allowed: readonly string[] = methods[kind];
  if (!allowed.includes(parsed.method))
    problem("route-method", `a ${kind} cannot be ${parsed.method}`, `use ${allowed.join(", ")}`);
  if (reservedPath(parsed.pattern)) {
    const message = `path ${parsed.pattern} is reserved for keelson's own routes`;
    problem("route-reserved", message, "choose another first segment");
  }
}
