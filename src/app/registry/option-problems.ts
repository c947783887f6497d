import type { BootProblem } from "../../base/errors/boot.ts";
import { isAccessRule } from "../../base/identity/access.ts";
import { authProblems, takesForeignTokens } from "../../base/identity/auth-options.ts";
import { logChecks } from "../../base/log/log-options.ts";
import { metricsChecks } from "../../base/metrics/metrics-options.ts";
import { type Environment, environmentOf } from "../../base/process/environment.ts";
import { defaultTimes, leastRestMs } from "../../base/process/times.ts";
import type { IncomingTrace } from "../../base/request/trace.ts";
import { cacheChecks } from "../../parts/config/cache/cache-options.ts";
import { corsProblems } from "../../parts/http/cors.ts";
import { limitChecks, limitProblems } from "../../parts/http/limits.ts";
import type { MessageProof } from "../../parts/messages/proof.ts";
import { isOnceBy } from "../../parts/once/once-by.ts";
import type { ServerOptions } from "./options.ts";
import { serverProblem } from "./registry.ts";

/** Reports all problems of the `buildServer` options themselves. Never throws. */
export function optionProblems(options: ServerOptions): BootProblem[] {
  const problems: BootProblem[] = [];
  const group = (
    path: string,
    value: unknown,
    known: Readonly<Record<string, (value: unknown) => string | undefined>>,
  ) => {
    if (value === undefined) return;
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      problems.push(
        serverProblem(
          path || "buildServer",
          "option-type",
          "it is not an object",
          "pass an object",
        ),
      );
      return;
    }
    for (const [name, given] of Object.entries(value)) {
      const key = path ? `${path}.${name}` : name;
      const check = Object.hasOwn(known, name) ? known[name] : undefined;
      if (check === undefined) {
        const fix = `known are ${Object.keys(known).join(", ")}`;
        problems.push(
          serverProblem(key, "unknown-option", `unknown option ${JSON.stringify(name)}`, fix),
        );
        continue;
      }
      const wanted = given === undefined ? undefined : check(given);
      if (wanted !== undefined)
        problems.push(
          serverProblem(
            key,
            "option-type",
            `${name === "secret" ? `a value of type ${typeof given}` : describe(given)} is not allowed`,
            `use ${wanted}`,
          ),
        );
    }
  };
  const unchecked = () => undefined;
  group("", options, {
    features: unchecked, // the registry checks features
    config: (value) => (isRecord(value) ? undefined : "an object of values by key identifier"),
    ssm: unchecked,
    keyRing: unchecked,
    auth: unchecked,
    cache: unchecked,
    dynamodb: unchecked,
    log: unchecked,
    cors: unchecked,
    limits: unchecked,
    once: unchecked,
    delivery: unchecked,
    isolation: unchecked,
    messages: unchecked,
    output: unchecked,
    openapi: unchecked,
    metrics: unchecked,
    trace: unchecked,
    shutdown: unchecked,
    basePath: (value) =>
      isBasePath(value) ? undefined : "a path such as /api, without a slash at its end",
    environment: (value) =>
      environments.includes(value) ? undefined : "development, test or production",
  });
  group("dynamodb", options?.dynamodb, {
    prefix: (value) =>
      isText(value, /^[A-Za-z0-9_.-]{1,100}$/) ? undefined : "letters, digits, `_`, `.` and `-`",
    endpoint: (value) => (typeof value === "string" && URL.canParse(value) ? undefined : "a URL"),
  });
  const pathRule = "a path such as /app, of at most 13 levels and without a slash at its end";
  group("ssm", options?.ssm, {
    path: (value) =>
      isText(value, /^(?=.{1,512}$)(\/[A-Za-z0-9_.-]+){1,13}$/) ? undefined : pathRule,
  });
  if (isRecord(options?.ssm) && options.ssm.path === undefined) {
    problems.push(
      serverProblem("ssm.path", "option-missing", "it is not there", `use ${pathRule}`),
    );
  }
  const isFlag = (value: unknown) => (typeof value === "boolean" ? undefined : "true or false");
  const parameterRule = "the name of a parameter, such as /app/key-ring";
  group("keyRing", options?.keyRing, {
    parameter: (value) =>
      isText(value, /^(?=.{1,1011}$)(?:[\w.-]+|(?:\/[\w.-]+){1,15})$/) ? undefined : parameterRule,
    bindVersion: isFlag,
  });
  if (isRecord(options?.keyRing)) problems.push(...keyRingProblems(options, parameterRule));
  group("cache", options?.cache, cacheChecks(options?.cache));
  group("log", options?.log, logChecks);
  group("limits", options?.limits, limitChecks);
  problems.push(
    ...limitProblems(options?.limits).map(({ key, rule, message, fix }) =>
      serverProblem(key, rule, message, fix),
    ),
  );
  group("once", options?.once, {
    waitMs: (value) =>
      Number.isSafeInteger(value) && Number(value) >= 0
        ? undefined
        : "a whole number of milliseconds",
    key: (value) => (isOnceBy(value) ? undefined : "either, idempotency-key or false"),
  });
  const isTime = (value: unknown) =>
    Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= 3_600_000
      ? undefined
      : "0 to 3,600,000 milliseconds";
  group("shutdown", options?.shutdown, { lingerMs: isTime, drainMs: isTime, totalMs: isTime });
  problems.push(...shutdownProblems(options?.shutdown));
  group("delivery", options?.delivery, { webhook: unchecked });
  group("delivery.webhook", isRecord(options?.delivery) ? options.delivery["webhook"] : undefined, {
    secret: (value) =>
      isRecord(value) && typeof value["id"] === "string" ? undefined : "the handle of a text key",
    allowHttp: isFlag,
    allowPrivate: isFlag,
    timeoutMs: (value) =>
      Number.isSafeInteger(value) && Number(value) > 0 && Number(value) <= 300_000
        ? undefined
        : "1 to 300,000 milliseconds",
  });
  group("isolation", options?.isolation, {
    role: (value) =>
      isText(value, /^arn:[a-z-]+:iam::\d{12}:role\/[\w+=,.@/-]{1,576}$/)
        ? undefined
        : "the ARN of a role",
  });
  group("metrics", options?.metrics, metricsChecks);
  group("messages", options?.messages, {
    proof: (value) => (messageProofs.includes(value) ? undefined : "off, sign or require"),
  });
  group("output", options?.output, {
    check: (value) =>
      value === "always" || value === "development" ? undefined : "always or development",
    mismatch: (value) => (value === "refuse" || value === "send" ? undefined : "refuse or send"),
  });
  const isName = (value: unknown) =>
    isText(value, /^.{1,200}$/) ? undefined : "a text of 1 to 200 characters";
  const access = (value: unknown) => (isAccessRule(value) ? undefined : "a rule of `access`");
  group("openapi", options?.openapi || undefined, { access, title: isName, version: isName });
  group("trace", options?.trace, {
    incoming: (value) => (incomingTraces.includes(value) ? undefined : "trust, link or ignore"),
  });
  if (options?.auth !== undefined) {
    const wrong = authProblems(options.auth).map(({ key, rule, message, fix }) =>
      serverProblem(key, rule, message, fix),
    );
    problems.push(...wrong);
    const isProduction = (options.environment ?? environmentOf(process.env)) === "production";
    if (wrong.length === 0 && isProduction && takesForeignTokens(options.auth)) {
      const message =
        "neither auth.issuer nor auth.audience is set, so tokens that were issued for other applications count";
      problems.push(
        serverProblem(
          "auth",
          "foreign-tokens",
          message,
          "set the audience of this application, or at least the issuer",
        ),
      );
    }
  }
  if (options?.cors !== undefined) {
    problems.push(
      ...corsProblems(options.cors).map(({ rule, message, fix }) =>
        serverProblem("cors", rule, message, fix),
      ),
    );
  }
  return problems;
}

/** Reports requested proofs that cannot be created without a key ring. */
export function proofProblems(options: ServerOptions, hasRing: boolean): BootProblem[] {
  const proof = options?.messages?.proof;
  if (hasRing || (proof !== "sign" && proof !== "require")) return [];
  const message = `${JSON.stringify(proof)} takes a key ring, and there is none`;
  const fix = "name one as keyRing.parameter, made with keelson key-ring create";
  return [serverProblem("messages.proof", "proof-key-ring", message, fix)];
}

function keyRingProblems({ keyRing, ssm }: ServerOptions, wanted: string): BootProblem[] {
  if (keyRing?.parameter === undefined) {
    return [
      serverProblem("keyRing.parameter", "option-missing", "it is not there", `use ${wanted}`),
    ];
  }
  if (typeof ssm?.path !== "string" || !String(keyRing.parameter).startsWith(`${ssm.path}/`))
    return [];
  const message = "the key ring lies below ssm.path, where every parameter is an app-boot override";
  return [serverProblem("keyRing.parameter", "key-ring-path", message, "give it a name elsewhere")];
}

/**
 * Reports a total that is too short. The linger and drain phases must leave time for workers and
 * resources.
 */
function shutdownProblems(given: ServerOptions["shutdown"]): BootProblem[] {
  if (!isRecord(given) || Object.values(given).some((value) => !Number.isSafeInteger(value)))
    return [];
  const { lingerMs, drainMs, totalMs } = { ...defaultTimes, ...given };
  const least = lingerMs + drainMs + leastRestMs;
  if (totalMs >= least) return [];
  const message = `totalMs is ${totalMs}, and linger and drain take ${lingerMs + drainMs} of it`;
  return [
    serverProblem(
      "shutdown.totalMs",
      "shutdown-total",
      message,
      `use ${least} or more, or shorten the others`,
    ),
  ];
}

const environments: readonly unknown[] = [
  "development",
  "test",
  "production",
] satisfies readonly Environment[];

const messageProofs: readonly unknown[] = [
  "off",
  "sign",
  "require",
] satisfies readonly MessageProof[];

const incomingTraces: readonly unknown[] = [
  "trust",
  "link",
  "ignore",
] satisfies readonly IncomingTrace[];

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isText(value: unknown, pattern: RegExp): boolean {
  return typeof value === "string" && pattern.test(value);
}

function isBasePath(value: unknown): boolean {
  return value === "" || isText(value, /^(\/[A-Za-z0-9._~-]+)+$/);
}

function describe(value: unknown): string {
  return typeof value === "string"
    ? JSON.stringify(value.slice(0, 100))
    : `a value of type ${value === null ? "null" : typeof value}`;
}
