import type { SQSClient } from "@aws-sdk/client-sqs";
import type { SSMClient } from "@aws-sdk/client-ssm";
import type { Lazy } from "../../base/process/lazy.ts";
import type { Database } from "../../base/types/database.ts";
import type { ApiKeyStore } from "../../parts/api-keys/api-key.ts";
import type { ConfigParameter } from "../../parts/config/declare/parameter-overrides.ts";
import type { ConfigStore, OperatorSession } from "../../parts/config/operate/operator-session.ts";
import type { ConfigRowReader, RowOwner } from "../../parts/config/read/rows.ts";
import type { QuotaStore } from "../../parts/limits/quota-change.ts";
import type { RateStore } from "../../parts/limits/rate-store.ts";
import type { Waiting } from "../../parts/limits/slots.ts";
import type { DueStore } from "../../parts/messages/due-jobs.ts";
import type { EqualJobStore } from "../../parts/messages/equal-jobs.ts";
import type { JobQueues } from "../../parts/messages/job-route.ts";
import type { KeptEventStore } from "../../parts/messages/kept-events.ts";
import type { MessageQueue } from "../../parts/messages/message-queue.ts";
import type { EventBus } from "../../parts/messages/outbox.ts";
import type { OutboxStore } from "../../parts/messages/outbox-store.ts";
import type { ClaimStore } from "../../parts/once/claim-store.ts";
import type { StepStore } from "../../parts/once/step.ts";
import type { TenantStore } from "../../parts/tenant-registry/tenant.ts";
import type { Wall, WallCaller } from "../../parts/wall/wall.ts";
import type { ProjectionStore } from "../projections/projection-store.ts";
import type { ScheduleStore } from "../schedules/schedule-step.ts";

/** External resources of a server. A host opens them at first use. */
export interface Adapters {
  readonly database: Database;
  databaseFor(request: DatabaseRequest): Database;
  /** Has no wall. */
  databaseAcrossTenants(request: DatabaseRequest): Database;
  /** Isolates tenants. Present if the server has tables with tenants. */
  readonly wall?: Wall | undefined;
  /** Rows as stored. Requests use the cache, `Runtime.configRows`. */
  readonly configRows: ConfigRowReader;
  /** Overrides and the key ring in SSM. Present if the server's options name either. */
  readonly parameters?: ParameterReader | undefined;
  readonly configStore: ConfigStore;
  readonly claims: ClaimStore;
  readonly schedules: Lazy<ScheduleStore>;
  readonly outbox: OutboxStore;
  readonly keptEvents: Lazy<KeptEventStore>;
  readonly projections: Lazy<ProjectionStore>;
  readonly dueJobs: Lazy<DueStore>;
  readonly equalJobs: Lazy<EqualJobStore>;
  readonly messaging: Lazy<Messaging>;
  readonly steps: Lazy<StepStore>;
  readonly apiKeys: Lazy<ApiKeyStore>;
  readonly tenants: Lazy<TenantStore>;
  readonly quotas: Lazy<QuotaStore>;
  readonly rates: Lazy<RateStore>;
  readonly slots: Lazy<Waiting>;
  /** Ends long polls. Exists only on the embedded stack, which cannot lose a message by it. */
  endPolls?(queueUrl: string): Promise<void>;
  /** Loads the SDK, which configuration rows do not need. Absent if it is loaded. */
  load?(): Promise<unknown>;
  close(): Promise<void>;
}

export interface Messaging extends JobQueues<MessageQueue> {
  readonly bus: EventBus;
  readonly events: MessageQueue;
  /** Queue of events of others. Only servers with receivers read it. */
  readonly others: MessageQueue;
  /** Queues from which the process receives jobs. */
  readonly received: readonly MessageQueue[];
  queue(name: string): MessageQueue;
  /** For hosts that poll the queues. */
  readonly sqs: SQSClient;
  /** For tests and tools that observe the calls. */
  readonly clients: readonly Pick<Database, "middlewareStack">[];
  close(): void;
}

export interface DatabaseRequest extends WallCaller {
  readonly signal: AbortSignal | undefined;
  /** Opens a configuration session on behalf of `owner`. */
  sessionFor(owner: RowOwner): OperatorSession;
}

export interface ParameterReader {
  /** Reads all decrypted parameters under a path. @throws Error if SSM fails after all retries. */
  read(path: string): Promise<readonly ConfigParameter[]>;
  /** Reads one, if it exists. @throws the errors of `read`. */
  get(name: string): Promise<ConfigParameter | undefined>;
  /** For tests and tools that observe the calls. */
  readonly middlewareStack: SSMClient["middlewareStack"];
  close(): void;
}
