import type { SQSClient } from "@aws-sdk/client-sqs";
import type { SSMClient } from "@aws-sdk/client-ssm";
import type { Lazy } from "../../base/process/lazy.ts";
import type { Database } from "../../base/types/database.ts";
import type { ConfigParameter } from "../../parts/config/declare/parameter-overrides.ts";
import type { ConfigStore } from "../../parts/config/operate/config-store.ts";
import type { OperatorSession } from "../../parts/config/operate/operator-session.ts";
import type { ConfigRowReader, RowOwner } from "../../parts/config/read/rows.ts";
import type { DueStore } from "../../parts/messages/due-jobs.ts";
import type { KeptEventStore } from "../../parts/messages/kept-events.ts";
import type { MessageQueue } from "../../parts/messages/message-queue.ts";
import type { EventBus } from "../../parts/messages/outbox.ts";
import type { OutboxStore } from "../../parts/messages/outbox-store.ts";
import type { ClaimStore } from "../../parts/once/claim-store.ts";
import type { StepStore } from "../../parts/once/step-store.ts";
import type { Wall, WallCaller } from "../../parts/wall/wall.ts";
import type { ProjectionStore } from "../projections/projection-store.ts";
import type { ScheduleStore } from "../schedules/schedule-store.ts";

/** External resources of a server. A host opens them at first use. */
export interface Adapters {
  readonly database: Database;
  /** Creates the `ctx.db` of a request. */
  databaseFor(request: DatabaseRequest): Database;
  /** Creates the `ctx.db` of a request without the wall. */
  databaseAcrossTenants(request: DatabaseRequest): Database;
  /** Isolates tenants. Present if the server has tables with tenants. */
  readonly wall?: Wall | undefined;
  /** Rows as stored. Requests read them through `Runtime.configRows`. */
  readonly configRows: ConfigRowReader;
  /** Reads app-boot overrides and the key ring. Present if the server names a path or a ring. */
  readonly parameters?: ParameterReader | undefined;
  /** Configuration store that operators read and write. */
  readonly configStore: ConfigStore;
  /** Claims of writes, events and jobs. */
  readonly claims: ClaimStore;
  /** Records when each schedule fired. */
  readonly schedules: Lazy<ScheduleStore>;
  /** Events that wait for dispatch. */
  readonly outbox: OutboxStore;
  /** Kept events. Loaded with the first. */
  readonly keptEvents: Lazy<KeptEventStore>;
  /** Versions and marks of projections. Loaded with the first. */
  readonly projections: Lazy<ProjectionStore>;
  /** Jobs that are due later. Loaded with the first. */
  readonly dueJobs: Lazy<DueStore>;
  readonly messaging: Lazy<Messaging>;
  /** Steps of runs. Loaded with the first. */
  readonly steps: Lazy<StepStore>;
  /** Ends the waiting polls of a queue, if that cannot lose a message: on the embedded stack. */
  endPolls?(queueUrl: string): Promise<void>;
  /**
   * Loads the SDK behind `database`. Absent if it is already loaded. Until then `database` waits
   * for it, while configuration rows are read without it.
   */
  load?(): Promise<unknown>;
  close(): Promise<void>;
}

/** Event bus, and the queues of events and jobs. */
export interface Messaging {
  readonly bus: EventBus;
  readonly events: MessageQueue;
  readonly jobs: MessageQueue;
  /** Returns another queue by its name. */
  queue(name: string): MessageQueue;
  /** SQS client for hosts that poll the queues. */
  readonly sqs: SQSClient;
  /** Clients for tests and tools that observe the calls. */
  readonly clients: readonly Pick<Database, "middlewareStack">[];
  close(): void;
}

/** Request that a database belongs to. */
export interface DatabaseRequest extends WallCaller {
  readonly signal: AbortSignal | undefined;
  /** Opens a configuration session on behalf of `owner`. */
  sessionFor(owner: RowOwner): OperatorSession;
}

/** Reads SSM parameters, decrypted. */
export interface ParameterReader {
  /**
   * Reads all pages under a path. @throws Error if SSM fails after the SDK's retries, or does not
   * answer in time.
   */
  read(path: string): Promise<readonly ConfigParameter[]>;
  /** Reads one parameter, `undefined` if it does not exist. @throws the same errors as `read`. */
  get(name: string): Promise<ConfigParameter | undefined>;
  /** Middleware stack for tests and tools that observe the calls. */
  readonly middlewareStack: SSMClient["middlewareStack"];
  close(): void;
}
