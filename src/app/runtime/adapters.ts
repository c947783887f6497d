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
import type { EventBus, OutboxStore } from "../../parts/messages/outbox.ts";
import type { ProjectionStore } from "../../parts/messages/projection-store.ts";
import type { ClaimStore } from "../../parts/once/claim-store.ts";
import type { StepStore } from "../../parts/once/step-store.ts";
import type { Wall, WallCaller } from "../../parts/wall/wall.ts";
import type { ScheduleStore } from "../schedules/schedule-store.ts";

/** What a server needs from outside, opened by a host at first use. */
export interface Adapters {
  readonly database: Database;
  /** Makes the `ctx.db` of a request. */
  databaseFor(request: DatabaseRequest): Database;
  /** The same without the wall. */
  databaseAcrossTenants(request: DatabaseRequest): Database;
  /** Keeps tenants apart; there where the server has tables with tenants. */
  readonly wall?: Wall | undefined;
  /** The rows as they are stored; requests read them through `Runtime.configRows`. */
  readonly configRows: ConfigRowReader;
  /** Where app-boot overrides and the key ring are read from; there where the server names a path or a ring. */
  readonly parameters?: ParameterReader | undefined;
  /** Rows as operators read and write them. */
  readonly configStore: ConfigStore;
  /** Where writes, events and jobs are claimed. */
  readonly claims: ClaimStore;
  /** Where it is noted when schedules fired. */
  readonly schedules: Lazy<ScheduleStore>;
  /** Where events wait until they are dispatched. */
  readonly outbox: OutboxStore;
  /** Where events are kept; loaded with the first. */
  readonly keptEvents: Lazy<KeptEventStore>;
  /** What is known of projections; loaded with the first. */
  readonly projections: Lazy<ProjectionStore>;
  /** Takes jobs that are due later out of it; loaded with the first. */
  readonly dueJobs: Lazy<DueStore>;
  /** The bus and the queues. */
  readonly messaging: Lazy<Messaging>;
  /** Where steps of runs are noted; loaded with the first. */
  readonly steps: Lazy<StepStore>;
  /** Ends the polls of a queue that wait, where they can be ended without losing a message: on the embedded stack. */
  endPolls?(queueUrl: string): Promise<void>;
  /** Loads what `database` works with; absent where that is there. Until then `database` waits for it, and rows are read without. */
  load?(): Promise<unknown>;
  close(): Promise<void>;
}

/** The bus that events are put on, and the queues that events and jobs come from. */
export interface Messaging {
  readonly bus: EventBus;
  readonly events: MessageQueue;
  readonly jobs: MessageQueue;
  /** Another queue, by its name. */
  queue(name: string): MessageQueue;
  /** The client of the queues, for who polls them. */
  readonly sqs: SQSClient;
  /** For tests and tools that watch the calls. */
  readonly clients: readonly Pick<Database, "middlewareStack">[];
  close(): void;
}

/** The request that a database belongs to. */
export interface DatabaseRequest extends WallCaller {
  readonly signal: AbortSignal | undefined;
  /** Opens a configuration session on behalf of `owner`. */
  sessionFor(owner: RowOwner): OperatorSession;
}

/** Reads parameters; every page, decrypted. */
export interface ParameterReader {
  /** @throws Error where SSM fails after the SDK's retries, or has not answered in time. */
  read(path: string): Promise<readonly ConfigParameter[]>;
  /** One parameter, decrypted; `undefined` where there is none of that name. @throws as `read`. */
  get(name: string): Promise<ConfigParameter | undefined>;
  /** For tests and tools that watch the calls. */
  readonly middlewareStack: SSMClient["middlewareStack"];
  close(): void;
}
