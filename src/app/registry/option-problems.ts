import type { BootProblem } from "../../base/errors/boot.ts";
import {
  flag,
  isRecord,
  kind,
  type OptionProblem,
  type OptionTable,
  oneOf,
  tableProblems,
  text,
  unchecked,
  whole,
} from "../../base/errors/option-table.ts";
import { isAccessRule } from "../../base/identity/access.ts";
import { authProblems, takesForeignTokens } from "../../base/identity/auth-options.ts";
import { logChecks } from "../../base/log/log-options.ts";
import { metricsChecks } from "../../base/metrics/metrics.ts";
import { type Environment, environmentOf } from "../../base/process/environment.ts";
import { mergedTimes, webFunctionMs } from "../../base/process/shutdown-limits.ts";
import type { IncomingTrace } from "../../base/request/trace.ts";
import { cacheChecks } from "../../parts/config/cache/cache-options.ts";
import { corsProblems } from "../../parts/http/cors-options.ts";
import { limitChecks, limitProblems } from "../../parts/http/limits.ts";
import { rateLimitProblems } from "../../parts/limits/rate-limit.ts";
import type { MessageProof } from "../../parts/messages/proof.ts";
import { isOnce, onceForms } from "../../parts/once/once-by.ts";
import type { ServerOptions } from "./options.ts";
import { serverProblem } from "./registry.ts";

export function optionProblems(options: ServerOptions): BootProblem[] {
  // Safe cast: the checks accept values of any type.
  const given = (isRecord(options) ? options : {}) as ServerOptions;
  const problems = [
    ...tableProblems("", options, callTable, "buildServer"),
    ...Object.entries(tables).flatMap(([path, tableOf]) => {
      const value = valueAt(given, path);
      if (value === undefined) return [];
      return [...tableProblems(path, value, tableOf(value)), ...(further[path]?.(given) ?? [])];
    }),
    ...rateLimitProblems("rateLimit", given.rateLimit),
    ...authenticationProblems(given),
    ...(given.cors === undefined ? [] : corsProblems(given.cors)).map((problem) => ({
      key: "cors",
      ...problem,
    })),
  ];
  return problems.map((problem) => ({ feature: "", ...problem }));
}

const callTable: OptionTable = {
  features: unchecked, // the registry checks features
  config: kind(isRecord, "an object of values by key identifier"),
  ...allUnchecked(
    "ssm",
    "keyRing",
    "auth",
    "cache",
    "dynamodb",
    "log",
    "cors",
    "limits",
    "rateLimit",
  ),
  ...allUnchecked("delivery", "isolation", "messages", "output", "openapi", "metrics", "trace"),
  shutdown: unchecked,
  tenants: flag,
  once: kind((value) => {
    const { waitMs = 0 } = Object(value);
    return isOnce(value, ["waitMs"]) && Number.isSafeInteger(waitMs) && waitMs >= 0;
  }, `${onceForms}, or waitMs from 0`),
  basePath: text(/^$|^(\/[A-Za-z0-9._~-]+)+$/, "a path such as /api, without a slash at its end"),
  environment: oneOf(
    ["development", "test", "production"] satisfies readonly Environment[],
    "development, test or production",
  ),
};

/** Options with a separate table or another check. */
function allUnchecked(...names: readonly (keyof ServerOptions)[]): OptionTable {
  return Object.fromEntries(names.map((name) => [name, unchecked]));
}

const pathRule = "a path such as /app, of at most 13 levels and without a slash at its end";
const parameterRule = "the name of a parameter, such as /app/key-ring";
const time = whole(0, 3_600_000, "0 to 3,600,000 milliseconds");
const name = text(/^.{1,200}$/, "a string of 1 to 200 characters");

/**
 * Tables of nested options by path, in the order in which problems are reported. A start creates only
 * the tables of given options, because creating all of them takes a tenth of `buildServer`.
 */
const tables: Readonly<Record<string, (given: unknown) => OptionTable>> = {
  dynamodb: () => ({
    prefix: text(/^[A-Za-z0-9_.-]{1,100}$/, "letters, digits, `_`, `.` and `-`"),
    endpoint: kind((value) => typeof value === "string" && URL.canParse(value), "a URL"),
  }),
  ssm: () => ({ path: text(/^(?=.{1,512}$)(\/[A-Za-z0-9_.-]+){1,13}$/, pathRule) }),
  keyRing: () => ({
    parameter: text(/^(?=.{1,1011}$)(?:[\w.-]+|(?:\/[\w.-]+){1,15})$/, parameterRule),
    bindVersion: flag,
  }),
  cache: cacheChecks,
  log: () => logChecks,
  limits: () => limitChecks,
  shutdown: () => ({ lingerMs: time, drainMs: time, totalMs: time }),
  delivery: () => ({ webhook: unchecked }),
  "delivery.webhook": () => ({
    secret: kind(
      (value) => isRecord(value) && typeof value["id"] === "string",
      "the handle of a key of type text",
    ),
    allowHttp: flag,
    allowPrivate: flag,
    timeoutMs: whole(1, 300_000, "1 to 300,000 milliseconds"),
  }),
  isolation: () => ({
    role: text(/^arn:[a-z-]+:iam::\d{12}:role\/[\w+=,.@/-]{1,576}$/, "the ARN of a role"),
  }),
  metrics: () => metricsChecks,
  messages: () => ({
    proof: oneOf(
      ["off", "sign", "require"] satisfies readonly MessageProof[],
      "off, sign or require",
    ),
  }),
  output: () => ({
    check: oneOf(["always", "development"], "always or development"),
    mismatch: oneOf(["refuse", "send"], "refuse or send"),
  }),
  openapi: () => ({ access: kind(isAccessRule, "a rule of `access`"), title: name, version: name }),
  trace: () => ({
    incoming: oneOf(
      ["trust", "link", "ignore"] satisfies readonly IncomingTrace[],
      "trust, link or ignore",
    ),
  }),
};

/** Checks of several options together, by path. They follow the table of the same path. */
const further: Readonly<Record<string, (options: ServerOptions) => OptionProblem[]>> = {
  ssm: ({ ssm }) =>
    isRecord(ssm) && ssm.path === undefined ? [missing("ssm.path", pathRule)] : [],
  keyRing: keyRingProblems,
  limits: ({ limits }) => limitProblems(limits),
  shutdown: shutdownProblems,
};

/** Returns the options at a path. `openapi: false` does not have options. */
function valueAt(options: ServerOptions, path: string): unknown {
  let value: unknown = options;
  for (const part of path.split(".")) value = isRecord(value) ? value[part] : undefined;
  return path === "openapi" ? value || undefined : value;
}

function missing(key: string, wanted: string): OptionProblem {
  return { key, rule: "option-missing", message: "it is not there", fix: `use ${wanted}` };
}

function authenticationProblems({ auth, environment }: ServerOptions): OptionProblem[] {
  if (auth === undefined) return [];
  const wrong = authProblems(auth);
  const isProduction = (environment ?? environmentOf(process.env)) === "production";
  if (wrong.length > 0 || !isProduction || !takesForeignTokens(auth)) return wrong;
  const message =
    "neither auth.issuer nor auth.audience is set, so tokens that were issued for other applications count";
  const fix = "set the audience of this application, or at least the issuer";
  return [{ key: "auth", rule: "foreign-tokens", message, fix }];
}

export function proofProblems(options: ServerOptions, hasRing: boolean): BootProblem[] {
  const proof = options?.messages?.proof;
  if (hasRing || (proof !== "sign" && proof !== "require")) return [];
  const message = `${JSON.stringify(proof)} requires a key ring, and the server has no key ring`;
  const fix = "name one as keyRing.parameter, made with keelson key-ring create";
  return [serverProblem("messages.proof", "proof-key-ring", message, fix)];
}

function keyRingProblems({ keyRing, ssm }: ServerOptions): OptionProblem[] {
  const key = "keyRing.parameter";
  if (!isRecord(keyRing)) return [];
  if (keyRing.parameter === undefined) return [missing(key, parameterRule)];
  if (typeof ssm?.path !== "string" || !String(keyRing.parameter).startsWith(`${ssm.path}/`))
    return [];
  const message = "the key ring is below ssm.path, where every parameter is an app-boot override";
  return [{ key, rule: "key-ring-path", message, fix: "give it a name elsewhere" }];
}

function shutdownProblems({ shutdown }: ServerOptions): OptionProblem[] {
  const given: NonNullable<ServerOptions["shutdown"]> = Object(shutdown); // any value has members
  const values = Object.values(given).filter((value) => value !== undefined);
  if (!values.every(Number.isSafeInteger)) return [];
  const { lingerMs, drainMs, totalMs } = mergedTimes(given);
  const least = lingerMs + drainMs + (totalMs > webFunctionMs ? 1_000 : 200);
  if (totalMs >= least) return [];
  const message = `totalMs is ${totalMs}, but linger and drain already take ${lingerMs + drainMs}`;
  const fix = `use ${least} or more, or shorten the others`;
  return [{ key: "shutdown.totalMs", rule: "shutdown-total", message, fix }];
}
