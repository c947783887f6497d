import type { SQSClient } from "@aws-sdk/client-sqs";
import type { SSMClient } from "@aws-sdk/client-ssm";
import type { Lazy } from "../../base/process/lazy.ts";
import type { Database } from "../../base/types/database.ts";
import type { ConfigParameter } from "../../parts/config/declare/parameter-overrides.ts";
import type { ConfigStore, OperatorSession } from "../../parts/config/operate/operator-session.ts";
import type { ConfigRowReader, RowOwner } from "../../parts/config/read/rows.ts";
import type { DueStore } from "../../parts/messages/due-jobs.ts";
import type { KeptEventStore } from "../../parts/messages/kept-events.ts";
import type { MessageQueue } from "../../parts/messages/message-queue.ts";
import type { EventBus } from "../../parts/messages/outbox.ts";
import type { OutboxStore } from "../../parts/messages/outbox-store.ts";
import type { ClaimStore } from "../../parts/once/claim-store.ts";
import type { StepStore } from "../../parts/once/step.ts";
import type { Wall, WallCaller } from "../../parts/wall/wall.ts";
import type { ProjectionStore } from "../projections/projection-store.ts";
import type { ScheduleStore } from "../schedules/schedule-step.ts";

/** External resources of a server. A host opens them at first use. */
export interface Adapters {
  readonly database: Database;
  /** Creates the `ctx.db` of a request. */
  databaseFor(request: DatabaseRequest): Database;
  /** Creates the `ctx.db` of a request without the wall. */
  databaseAcrossTenants(request: DatabaseRequest): Database;
  /** Wall that isolates tenants. Present if the server has tables with tenants. */
  readonly wall?: Wall | undefined;
  /** Reader of configuration rows as stored. Requests use the cache, `Runtime.configRows`. */
  readonly configRows: ConfigRowReader;
  /** Reader of overrides and the key ring in SSM. Present if the server's options name either. */
  readonly parameters?: ParameterReader | undefined;
  readonly configStore: ConfigStore;
  readonly claims: ClaimStore;
  /** Records when each schedule ran. */
  readonly schedules: Lazy<ScheduleStore>;
  /** Events and jobs that wait for dispatch. */
  readonly outbox: OutboxStore;
  readonly keptEvents: Lazy<KeptEventStore>;
  /** Versions of projections, and marks of counted events. */
  readonly projections: Lazy<ProjectionStore>;
  readonly dueJobs: Lazy<DueStore>;
  readonly messaging: Lazy<Messaging>;
  readonly steps: Lazy<StepStore>;
  /** Ends a queue's long polls. Only on the embedded stack, where this cannot lose a message. */
  endPolls?(queueUrl: string): Promise<void>;
  /**
   * Loads the SDK that `database` waits for, but configuration rows do not need. Absent if already
   * loaded.
   */
  load?(): Promise<unknown>;
  close(): Promise<void>;
}

export interface Messaging {
  readonly bus: EventBus;
  readonly events: MessageQueue;
  readonly jobs: MessageQueue;
  queue(name: string): MessageQueue;
  /** SQS client for hosts that poll the queues. */
  readonly sqs: SQSClient;
  /** Clients for tests and tools that observe the calls. */
  readonly clients: readonly Pick<Database, "middlewareStack">[];
  close(): void;
}

export interface DatabaseRequest extends WallCaller {
  readonly signal: AbortSignal | undefined;
  /** Opens a configuration session on behalf of `owner`. */
  sessionFor(owner: RowOwner): OperatorSession;
}

export interface ParameterReader {
  /**
   * Reads all decrypted parameters under a path. @throws Error if SSM fails after the SDK's retries
   * or times out.
   */
  read(path: string): Promise<readonly ConfigParameter[]>;
  /** Reads a decrypted parameter, if it exists. @throws the same errors as `read`. */
  get(name: string): Promise<ConfigParameter | undefined>;
  /** Middleware stack for tests and tools that observe the calls. */
  readonly middlewareStack: SSMClient["middlewareStack"];
  close(): void;
}
