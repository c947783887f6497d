import type { Authenticator } from "../../base/identity/authenticator.ts";
import type { ServerLogger } from "../../base/log/server-logger.ts";
import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { Environment, Variables } from "../../base/process/environment.ts";
import type { Lazy } from "../../base/process/lazy.ts";
import type { ProcessState } from "../../base/process/lifecycle.ts";
import type { RandomDigits } from "../../base/request/trace.ts";
import type { Secrets } from "../../base/secrets/secrets.ts";
import type { CachedRows } from "../../parts/config/cache/cached-rows.ts";
import type { ConfigResolver } from "../../parts/config/read/resolver.ts";
import type { RowCipher } from "../../parts/config/read/row-cipher.ts";
import type { HeaderCheck } from "../../parts/http/headers.ts";
import type { RouteTable } from "../../parts/http/route-table.ts";
import type { MessageGuard } from "../../parts/messages/message-guard.ts";
import type { Suspensions } from "../../parts/tenant-registry/suspensions.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import type { ChannelDeclaration, JobDeclaration } from "../handlers/message-handlers.ts";
import type { ColdStart } from "../observe/run-lines.ts";
import type { ObservedRun, RunObserver } from "../observe/run-observer.ts";
import type { Tracing } from "../observe/tracing.ts";
import type { Projections } from "../projections/projections.ts";
import type { DeclaredServer } from "../registry/declared-server.ts";
import type { Adapters } from "./adapters.ts";
import type { RateLimiting } from "./rate-limiting.ts";
import type { RunServices } from "./run-services.ts";

/** @param nowMs - time of the ID, in milliseconds since the epoch. Default: now. */
export type RequestIds = (nowMs?: number) => string;

export interface OpeningAdapters {
  /** With the SDK and the parameters of SSM loaded. Replaced when they are closed. */
  readonly all: Pick<Lazy<Adapters>, "value">;
  /**
   * Opens the adapters and loads the overrides of SSM. After a failure, the next call tries again,
   * after a pause if SSM was the cause.
   */
  open(): Promise<Adapters>;
  /** Opens the adapters of a handler, and loads the SDK only if the handler needs it. */
  openFor(handler: HandlerDeclaration): Adapters | Promise<Adapters>;
}

/** Server bound to its adapters, ready to run requests. */
export interface Runtime {
  readonly server: DeclaredServer;
  readonly environment: Environment;
  readonly variables: Variables;
  readonly clock: Clock;
  readonly log: ServerLogger;
  readonly routes: RouteTable<HandlerDeclaration>;
  /** Includes the app-boot overrides of SSM once the adapters are open. */
  readonly resolver: ConfigResolver;
  readonly configRows: CachedRows;
  /** Its key ring is loaded with the adapters. */
  readonly secrets: Secrets;
  readonly cipher: RowCipher;
  readonly authenticator: Authenticator;
  readonly verifiesTokens: boolean;
  /** Returns the error of a request with invalid headers. */
  readonly refusalOfHeaders: HeaderCheck;
  readonly bodyLimitBytes: number;
  /** Absent without `limits.inFlightPerTenant`, and in a Lambda function. */
  readonly tenantsInFlight: TenantsInFlight | undefined;
  readonly tableName: (name: string) => string;
  readonly newRequestId: RequestIds;
  /** Undeclared errors and statuses of this process. */
  readonly reportedErrors: Set<string>;
  /** Absent if no tracer was registered when the runtime was created. */
  readonly tracing: Lazy<Tracing> | undefined;
  readonly observer: RunObserver | undefined;
  readonly coldStart: ColdStart;
  /** Absent if the server does not measure. */
  readonly metrics: Metrics | undefined;
  readonly newTraceDigits: RandomDigits;
  /** Events and jobs in progress in this process, by claim, and runs of `server.run`. */
  readonly inFlight: Map<string, InFlightWork>;
  /** Signs sent and verifies received messages. */
  readonly messages: Lazy<MessageGuard>;
  readonly projections: Lazy<Projections>;
  /** Includes the built-in ones. */
  readonly channels: ReadonlyMap<string, ChannelDeclaration>;
  readonly deliveryJob: JobDeclaration;
  /** Whether a rate limit applies to any route. */
  readonly isLimited: boolean;
  readonly limits: Lazy<RateLimiting>;
  /** Which tenants are suspended. Absent without `tenants: true`. */
  readonly suspensions: Lazy<Suspensions> | undefined;
  readonly lifecycle: ProcessState;
  readonly adapters: OpeningAdapters;
  readonly runs: Lazy<RunServices>;
  /** With `keepsMetrics`, the host closes the metrics itself, after it has flushed them. */
  close(options?: { readonly keepsMetrics: boolean }): Promise<void>;
}

/** Limits the requests of each tenant that the process works on, until their ends are observed. */
export interface TenantsInFlight extends RunObserver {
  /**
   * @param scope - a `RequestScope`, which this file cannot import.
   * @throws FrameworkError `too_many_requests` if the caller's tenant is at its limit.
   */
  enter(scope: ObservedRun, handler: HandlerDeclaration): Promise<void>;
}

interface InFlightWork {
  readonly work: Promise<unknown>;
  readonly handler: string;
  /** IDs in the log lines of the work: `eventId` or `jobId`, `origRequestId`, `causedBy`. */
  readonly ids: Readonly<Record<string, string>>;
}
