import type { Authenticator } from "../../base/identity/authenticator.ts";
import type { ServerLogger } from "../../base/log/server-logger.ts";
import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { Environment, Variables } from "../../base/process/environment.ts";
import type { Lazy } from "../../base/process/lazy.ts";
import type { LifecycleState } from "../../base/process/lifecycle.ts";
import type { RandomDigits } from "../../base/request/trace.ts";
import type { Secrets } from "../../base/secrets/secrets.ts";
import type { CachedRows } from "../../parts/config/cache/cached-rows.ts";
import type { ConfigResolver } from "../../parts/config/read/resolver.ts";
import type { RowCipher } from "../../parts/config/read/row-cipher.ts";
import type { HeaderCheck } from "../../parts/http/headers.ts";
import type { RouteTable } from "../../parts/http/route-table.ts";
import type { MessageGuard } from "../../parts/messages/message-guard.ts";
import type { HandlerDeclaration } from "../features/handler.ts";
import type { ChannelDeclaration, JobDeclaration } from "../features/message-handlers.ts";
import type { RunObserver } from "../observe/run-observer.ts";
import type { Tracing } from "../observe/spans.ts";
import type { DeclaredServer } from "../registry/declared-server.ts";
import type { Adapters } from "./adapters.ts";
import type { InFlightWork } from "./in-flight-work.ts";
import type { Projections } from "./projections.ts";
import type { RequestIds } from "./request-id.ts";
import type { RunServices } from "./run-services.ts";

/** A server bound to its adapters: what requests run on. */
export interface Runtime {
  readonly server: DeclaredServer;
  readonly environment: Environment;
  readonly variables: Variables;
  readonly clock: Clock;
  readonly log: ServerLogger;
  readonly routes: RouteTable<HandlerDeclaration>;
  /** Knows the app-boot overrides of SSM once the adapters are open. */
  readonly resolver: ConfigResolver;
  /** Configuration rows behind the cache. */
  readonly configRows: CachedRows;
  /** Seals and opens with the key ring, which is known once the adapters are open. */
  readonly secrets: Secrets;
  /** Opens and seals the rows of encrypted keys; knows the key ring once the adapters are open. */
  readonly cipher: RowCipher;
  readonly authenticator: Authenticator;
  /** Whether anything can verify a token. */
  readonly verifiesTokens: boolean;
  /** Says why a request is refused for its headers, whatever its route. */
  readonly refusalOfHeaders: HeaderCheck;
  /** The largest request body, in bytes. */
  readonly bodyLimitBytes: number;
  readonly tableName: (name: string) => string;
  readonly newRequestId: RequestIds;
  /** The errors that no handler declares, and were reported: each is once a process. */
  readonly reportedErrors: Set<string>;
  /** Makes spans; absent where no tracer had registered itself when the runtime was made. Loaded with the first run. */
  readonly tracing: Lazy<Tracing> | undefined;
  /** Is told of every run; `undefined` where nobody listens. */
  readonly observer: RunObserver | undefined;
  /** Takes what is measured; `undefined` where nobody listens. */
  readonly metrics: Metrics | undefined;
  readonly newTraceDigits: RandomDigits;
  /** The events and jobs in progress in this process, by their claims. */
  readonly inFlight: Map<string, InFlightWork>;
  /** Signs messages, and says which are taken; loaded with the first. */
  readonly messages: Lazy<MessageGuard>;
  /** Writes projections and knows their versions; loaded with the first. */
  readonly projections: Lazy<Projections>;
  /** The channels of deliveries, those that every server has among them. */
  readonly channels: ReadonlyMap<string, ChannelDeclaration>;
  /** The job that sends deliveries. */
  readonly deliveryJob: JobDeclaration;
  /** What `/health/ready` reports; the container moves it on. */
  readonly lifecycle: {
    readonly state: LifecycleState;
    readonly draining: AbortSignal;
    /** Readiness fails from now on, and responses close their connections. */
    drain(): void;
    /** Says where the process is. */
    enter(state: LifecycleState): void;
  };
  /**
   * Opens the adapters and loads the overrides of SSM. A failed opening is tried again, after a pause where SSM was the
   * reason.
   */
  adapters(): Promise<Adapters>;
  /** The adapters, once they are open. */
  readonly opened: Adapters | undefined;
  /** The same, perhaps before the SDK is loaded: for handlers in `light`, which seldom need it. */
  lightAdapters(): Promise<Adapters>;
  /** The same, once they are there. */
  readonly openedLight: Adapters | undefined;
  /** The handlers that most likely read configuration and nothing else of DynamoDB. */
  readonly light: ReadonlySet<HandlerDeclaration>;
  /** What runs with effects share, loaded with the first of them. */
  runs(): Promise<RunServices>;
  /** The same, once it is there. */
  readonly openedRuns: RunServices | undefined;
  /** Closes the adapters, where they were opened. */
  close(): Promise<void>;
}
