import type { AccessRule } from "../../base/identity/access.ts";
import type { AuthOptions } from "../../base/identity/auth-options.ts";
import type { LogOptions } from "../../base/log/log-options.ts";
import type { MetricsOptions } from "../../base/metrics/metrics.ts";
import type { Environment } from "../../base/process/environment.ts";
import type { IncomingTrace } from "../../base/request/trace.ts";
import type { CacheOptions } from "../../parts/config/cache/cache-options.ts";
import type { OverridesOf } from "../../parts/config/declare/app-overrides.ts";
import type { ConfigKeyHandle } from "../../parts/config/declare/key.ts";
import type { CorsOptions } from "../../parts/http/cors-options.ts";
import type { Limits } from "../../parts/http/limits.ts";
import type { MessageProof } from "../../parts/messages/proof.ts";
import type { OnceOptions } from "../../parts/once/once-by.ts";
import type { Feature } from "../features/feature.ts";
import type { RateLimits } from "../handlers/handler.ts";

/** Options of `buildServer`. */
export interface ServerOptions<Features extends readonly Feature[] = readonly Feature[]> {
  /** Features of the server. */
  readonly features: Features;
  /**
   * App-boot overrides (specification 2.3), by key identifier. See
   * `docs/configuration-overrides.md#in-code`. Default: none.
   */
  readonly config?: OverridesOf<Features>;
  /**
   * App-boot overrides in SSM, read at startup. They override `config`. See
   * `docs/configuration-overrides.md#from-ssm`. Default: none.
   */
  readonly ssm?: {
    /** Path of the parameters: `/app` for `/app/<feature>/<key name>`. */
    readonly path: string;
  };
  /**
   * Key ring for `encrypted` keys. See `docs/secrets.md`. Default: none in production, elsewhere one
   * derived from the development secret.
   */
  readonly keyRing?: {
    /** Name of a SecureString in SSM: `/app/key-ring`. Must not be below `ssm.path`. */
    readonly parameter: string;
    /**
     * Binds each encrypted value to the version of its row, so that an attacker cannot restore an
     * older value. Turn it on once no process runs keelson 0.1.0, which answers 503 for a bound value.
     * Bound and unbound values stay readable. See `docs/key-ring.md#older-values`. Default `false`.
     */
    readonly bindVersion?: boolean;
  };
  /**
   * Verification of tokens. See `docs/identity.md#tokens`. Default: with the secret in
   * `KEELSON_AUTH_SECRET`; in development, with a secret of this checkout.
   */
  readonly auth?: AuthOptions;
  /**
   * Age and size limits of the in-memory cache of configuration rows. See
   * `docs/configuration-reads.md#age-of-the-rows`.
   */
  readonly cache?: CacheOptions;
  /** Names of the tables, and the address of DynamoDB. */
  readonly dynamodb?: {
    /** Prefix of table names. Default `keelson`. */
    readonly prefix?: string;
    /** URL to call instead of AWS. Takes precedence over `AWS_ENDPOINT_URL`. Default: none. */
    readonly endpoint?: string;
  };
  /** Levels and contents of the log. See `docs/errors-and-logs.md#levels`. */
  readonly log?: LogOptions;
  /**
   * Metrics, see `docs/metrics.md`. In Lambda, this enables CloudWatch metrics, which incur costs.
   * Default: none.
   */
  readonly metrics?: MetricsOptions;
  /** Cross-origin requests from browsers. Default: none allowed. */
  readonly cors?: CorsOptions;
  /** Limits on requests. See `docs/container.md#what-one-client-may-take`. */
  readonly limits?: Limits;
  /** Limits that all routes of the features share. See `docs/rate-limits.md`. Default: none. */
  readonly rateLimit?: RateLimits;
  /** Prefix of every path: `/api`. Default: none. */
  readonly basePath?: string;
  /**
   * Deduplication of retried writes (specification 6.6); `false` turns it off, except for writes
   * that set `once`. See `docs/once.md#options`.
   */
  readonly once?:
    | (OnceOptions & {
        /**
         * Time that a concurrent duplicate waits for the first request before a 409, in
         * milliseconds. Default 10,000.
         */
        readonly waitMs?: number;
      })
    | false;
  /**
   * Shutdown phases of a container (specification 3.1). A Web Function has other defaults. See
   * `docs/container.md#shutdown`.
   */
  readonly shutdown?: {
    /** Time during which requests are still accepted, in milliseconds. Default 3,000. */
    readonly lingerMs?: number;
    /** Time that requests in flight then have to complete, in milliseconds. Default 30,000. */
    readonly drainMs?: number;
    /** Limit of the whole shutdown, in milliseconds. Default 40,000. */
    readonly totalMs?: number;
  };
  /** Options of the built-in channels. See `docs/deliveries.md`. */
  readonly delivery?: DeliveryOptions;
  /**
   * Additional isolation of tenants by AWS, for tables with `tenant: true`: commands that reach
   * tenants' rows are signed with a session of a role. See
   * `docs/tenant-isolation.md#a-role-for-each-tenant`. Default: none.
   */
  readonly isolation?: {
    /**
     * ARN of the role to assume for each tenant. Default `KEELSON_ISOLATION_ROLE`, the only source
     * outside production.
     */
    readonly role?: string;
  };
  /** Validation of results against `output` schemas. See `docs/responses.md#output`. */
  readonly output?: {
    /** `development` validates only outside production. Default `always`. */
    readonly check?: "always" | "development";
    /**
     * `refuse` answers a result that does not match with 500 `response_mismatch` and commits
     * nothing; `send` sends it unchanged and logs `response.mismatch`. Default `refuse`.
     */
    readonly mismatch?: "refuse" | "send";
  };
  /**
   * OpenAPI document at `GET /openapi.json`; `false` disables it. See `docs/openapi.md#serving-it`.
   */
  readonly openapi?:
    | false
    | {
        /** Access to the document. Default: every caller in development, no caller elsewhere. */
        readonly access?: AccessRule;
        /** Name of the API. Default `API`. */
        readonly title?: string;
        /** Version of the API. Default `0.0.0`. */
        readonly version?: string;
      };
  /** Traces of requests. See `docs/traces.md#what-comes-in`. */
  readonly trace?: {
    /**
     * Handling of the trace that a request names. `trust` joins it: same trace ID, sampled if
     * the caller sampled it. `link` starts a new trace with a link to it, `ignore` one without.
     * Default: `trust` for an identified caller if the access rule requires one, otherwise `link`.
     */
    readonly incoming?: IncomingTrace;
  };
  /** Protection of messages. See `docs/message-proofs.md`. */
  readonly messages?: {
    /**
     * Proof that events, jobs and deliveries come from this server. Only `require` protects: it
     * rejects messages without proof. `sign` prepares for it: keelson signs messages and still
     * accepts unsigned ones. `off` does neither. Default: `sign` with a key ring, otherwise `off`.
     */
    readonly proof?: MessageProof;
  };
  /**
   * Registers tenants, see `docs/tenant-registry.md`: `server.tenants` creates and suspends them.
   * Tenants that are not registered keep their access. Default `false`.
   */
  readonly tenants?: boolean;
  /** Environment of the server. Default: `NODE_ENV` if it is `development` or `test`, otherwise `production`. */
  readonly environment?: Environment;
}

/** Options of the built-in channels. */
export interface DeliveryOptions {
  readonly webhook?: WebhookOptions;
}

/** Options of the `webhook` channel. */
export interface WebhookOptions {
  /**
   * Configuration key of each tenant's signing secret, a string, preferably `encrypted`. Default:
   * webhooks are not signed.
   */
  readonly secret?: ConfigKeyHandle<string | undefined>;
  /** Allows `http:` URLs. Default `false`. */
  readonly allowHttp?: boolean;
  /** Allows addresses of this machine and of private networks. Default `false`. */
  readonly allowPrivate?: boolean;
  /** Time limit of one attempt, in milliseconds. Default 10,000. */
  readonly timeoutMs?: number;
}

/** Options of `server.run`. */
export interface RunOptions {
  /** Purpose of the run, up to 500 characters, logged as `run.started`. */
  readonly reason: string;
  /** Tenant of the run and of everything that it causes. Default: none, a system run. */
  readonly tenantId?: string;
  /** ID of a user of the tenant. Default: none. */
  readonly userId?: string;
  /** Roles of the user. Default: none. */
  readonly roles?: readonly string[];
  /**
   * For 5 minutes, a run with the same ID, tenant and user does nothing and returns the first
   * result. 1 to 128 characters of `A-Z a-z 0-9 . _ : = + / @ -`. Default: generated.
   */
  readonly requestId?: string;
}
