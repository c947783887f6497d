import type { AuthOptions } from "../../base/identity/auth-options.ts";
import type { PowertoolsThreshold } from "../../base/log/load-powertools.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { Environment, Variables } from "../../base/process/environment.ts";
import type { ClaimSchedule } from "../../parts/once/held-claim.ts";
import type { Measuring } from "../metrics/run-metrics.ts";
import type { WebhookOptions } from "../registry/options.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { Runtime, TenantsInFlight } from "../runtime/runtime.ts";

/** The members of a runtime that adapters use. */
export type AdaptedRuntime = Pick<
  Runtime,
  "server" | "environment" | "clock" | "log" | "metrics" | "runs" | "tableName"
>;

/** Options that a host passes to `createRuntime`. */
export interface RuntimeOptions {
  readonly variables: Variables;
  readonly openAdapters: (runtime: AdaptedRuntime) => Promise<Adapters>;
  readonly clock?: Clock;
  /** Timers that renew the leases of claims, for tests. Default: the process's timers. */
  readonly schedule?: ClaimSchedule;
  /** Writes a log line. Default: to stdout. */
  readonly write?: (line: string) => void;
  /** Receives each log record as JSON, in addition to `write`. */
  readonly keepRecord?: ((record: string) => void) | undefined;
  /** From `loadPowertools`. Default: Powertools' variables are ignored. */
  readonly powertools?: PowertoolsThreshold | undefined;
  /** Metrics and their observer. Default: no measurements. */
  readonly measuring?: Measuring | undefined;
  /** From `openTenantsInFlight`. Default: the requests of a tenant are not limited. */
  readonly tenantsInFlight?: TenantsInFlight | undefined;
  /**
   * Used without `KEELSON_AUTH_SECRET`: signs and verifies tokens if there is no `auth`, and
   * replaces a missing key ring.
   */
  readonly developmentSecret?: string;
  /** Replaces the server's `auth`, for tests. */
  readonly auth?: AuthOptions;
  /** Replaces the server's environment, for tests. */
  readonly environment?: Environment;
  /** Replaces the server's `delivery.webhook`, for tests. */
  readonly webhook?: WebhookOptions;
  /** Whether the process cannot work in the background, like in Lambda. Default `false`. */
  readonly isFrozenBetweenEvents?: boolean;
}
