import type { BootProblem } from "../../base/errors/boot.ts";
import { type AccessRule, isAccessRule } from "../../base/identity/access.ts";
import {
  type AuthOptions,
  authProblems,
  takesForeignTokens,
} from "../../base/identity/auth-options.ts";
import { type LogOptions, logChecks } from "../../base/log/log-options.ts";
import { type MetricsOptions, metricsChecks } from "../../base/metrics/metrics-options.ts";
import { type Environment, environmentOf } from "../../base/process/environment.ts";
import { defaultTimes, leastRestMs } from "../../base/process/times.ts";
import type { IncomingTrace } from "../../base/request/trace.ts";
import { type CacheOptions, cacheChecks } from "../../parts/config/cache/cache-options.ts";
import type { OverridesOf } from "../../parts/config/declare/override-types.ts";
import { type CorsOptions, corsProblems } from "../../parts/http/cors.ts";
import { type Limits, limitChecks, limitProblems } from "../../parts/http/limits.ts";
import type { MessageProof } from "../../parts/messages/proof.ts";
import { isOnceBy, type OnceBy } from "../../parts/once/once-by.ts";
import type { Feature } from "../features/feature.ts";
import type { DeliveryOptions } from "./delivery-options.ts";
import { serverProblem } from "./registry.ts";

/** Options of `buildServer`. */
export interface ServerOptions<Features extends readonly Feature[] = readonly Feature[]> {
  readonly features: Features;
  /** App-boot overrides (specification 2.3), by key identifier. */
  readonly config?: OverridesOf<Features>;
  /**
   * App-boot overrides from SSM Parameter Store, read at startup. They take precedence over
   * `config`. Default: none.
   */
  readonly ssm?: {
    /** Path of the parameters: `/app` for `/app/<feature>/<key name>`. */
    readonly path: string;
  };
  /**
   * Key ring for `encrypted` keys. Default: none in production; elsewhere a key ring derived from
   * the development secret.
   */
  readonly keyRing?: {
    /**
     * SSM parameter with the key ring, a SecureString: `/app/key-ring`. Must not be below
     * `ssm.path`.
     */
    readonly parameter: string;
    /**
     * Binds each value to the version of its row, so that an older value cannot be restored. Turn
     * it on once no process runs keelson 0.1.0, which answers 503 for such a value. Both forms are
     * always readable. Default `false`.
     */
    readonly bindVersion?: boolean;
  };
  /**
   * Verification of tokens. Default: `KEELSON_AUTH_SECRET`; in development, a secret of this
   * checkout.
   */
  readonly auth?: AuthOptions;
  /** Lifetime and number of the configuration rows in memory. */
  readonly cache?: CacheOptions;
  readonly dynamodb?: {
    /** Prefix of table names. Default `keelson`. */
    readonly prefix?: string;
    /** Endpoint to use instead of AWS. Takes precedence over `AWS_ENDPOINT_URL`. */
    readonly endpoint?: string;
  };
  readonly log?: LogOptions;
  /**
   * Metrics, described in `docs/observe.md`. In Lambda, this option enables CloudWatch metrics,
   * which incur costs. Default: no metrics.
   */
  readonly metrics?: MetricsOptions;
  /** Cross-origin requests from browsers. Default: none are allowed. */
  readonly cors?: CorsOptions;
  readonly limits?: Limits;
  /** Prefix of every path: `/api`. Default: none. */
  readonly basePath?: string;
  /** Deduplication of retried writes (specification 6.6). */
  readonly once?: {
    /**
     * Time that a concurrent duplicate waits for the first request before it fails with a 409, in
     * milliseconds. Default 10,000.
     */
    readonly waitMs?: number;
    /** Client header that deduplicates, unless the write sets its own. Default `either`. */
    readonly key?: OnceBy;
  };
  /** Time limits of a container's shutdown phases (specification 3.1). */
  readonly shutdown?: {
    /** Time for which requests are still accepted, in milliseconds. Default 3,000. */
    readonly lingerMs?: number;
    /** Time that requests in flight then have to finish, in milliseconds. Default 30,000. */
    readonly drainMs?: number;
    /** Time limit of the whole shutdown, in milliseconds. Default 40,000. */
    readonly totalMs?: number;
  };
  /** Options of the built-in channels. */
  readonly delivery?: DeliveryOptions;
  /**
   * Isolation of tenants in the AWS account as well, for tables with `tenant: true`. See
   * `docs/tenants.md`. Default: none.
   */
  readonly isolation?: {
    /**
     * ARN of the role to assume for each tenant. Default `KEELSON_ISOLATION_ROLE`. Outside
     * production, only the variable counts.
     */
    readonly role?: string;
  };
  /** Validation of results against the `output` schemas of their handlers. */
  readonly output?: {
    /**
     * Environments in which results are validated. `development` validates in development and test,
     * and sends unvalidated results in production. Default `always`.
     */
    readonly check?: "always" | "development";
    /**
     * Handling of a result that does not fit. `refuse` answers 500 `response_mismatch` and commits
     * nothing. `send` sends the result unchanged and logs `response.mismatch`. Default `refuse`.
     */
    readonly mismatch?: "refuse" | "send";
  };
  /**
   * OpenAPI document of the server at `GET /openapi.json`. `false` disables it. Otherwise,
   * development serves it to every caller, and other environments serve it only to callers that
   * `access` admits.
   */
  readonly openapi?:
    | false
    | {
        /** Access rule of the document. Default: no access outside development. */
        readonly access?: AccessRule;
        /** Name of the API. Default `API`. */
        readonly title?: string;
        /** Version of the API. Default `0.0.0`. */
        readonly version?: string;
      };
  readonly trace?: {
    /**
     * Handling of the trace that a request names. `trust` joins it: same trace ID, sampled if the
     * caller sampled it. `link` starts a new trace that links to it. `ignore` ignores it. Default:
     * `trust` if the access rule requires a caller and the caller is identified, otherwise `link`.
     */
    readonly incoming?: IncomingTrace;
  };
  readonly messages?: {
    /**
     * Proof that events, jobs and deliveries come from this server. `require` rejects messages
     * without proof, and is the only value that protects. `sign` signs messages but accepts
     * unsigned ones, to prepare for `require`. `off` does neither. Default: `sign` with a key ring,
     * otherwise `off`.
     */
    readonly proof?: MessageProof;
  };
  /**
   * Runtime environment. Default: `NODE_ENV` if it is exactly `development` or `test`, otherwise
   * `production`.
   */
  readonly environment?: Environment;
}

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
