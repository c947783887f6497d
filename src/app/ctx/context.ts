import { anonymous, type User } from "../../base/identity/access.ts";
import type { Logger } from "../../base/log/logger.ts";
import { ownMetrics } from "../../base/metrics/metrics.ts";
import type { RequestView } from "../../base/request/request-view.ts";
import type { Trace } from "../../base/request/trace.ts";
import type { Database } from "../../base/types/database.ts";
import { nameOf } from "../../base/types/handles.ts";
import type { OperatorSession } from "../../parts/config/operate/operator-session.ts";
import {
  type ComputedNode,
  type ComputedValues,
  createComputedValues,
} from "../../parts/config/read/computed-values.ts";
import {
  FewDecisions,
  type HeldDecisions,
  type RowView,
} from "../../parts/config/read/key-rows.ts";
import { parameterUsed, resolveConfigOrParam } from "../../parts/config/read/request-parameter.ts";
import type { ConfigReads } from "../../parts/config/read/resolver.ts";
import type { RowOwner } from "../../parts/config/read/rows.ts";
import type { EventRange } from "../../parts/messages/kept-events.ts";
import type { SendOptions } from "../handlers/effect-options.ts";
import type { Effects } from "../handlers/effects.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import { type QuotaUse, quotaUse } from "../handlers/quota.ts";
import type { Adapters, DatabaseRequest } from "../runtime/adapters.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { logOf, type RequestScope } from "../runtime/scope.ts";
import type { EffectCaller } from "./effect-ledger.ts";
import { type ReadingSession, rateLimitsOf, readConfig, readEvents, runQuery } from "./reads.ts";
import { openAcrossTenants } from "./request-database.ts";
import type { RunCalls } from "./work.ts";

export interface ContextParts {
  readonly request?: (() => RequestView) | undefined;
  /** Absent in a query. */
  readonly commits?: RunCalls | undefined;
  /** Default: the scope's. */
  readonly log?: Logger;
}

/** A query has no effects. */
type ContextOwner = EffectCaller | "query";

/** Creates the `ctx` of a query (specification 2.6), whose scope has its handler and user. */
export function createContext(
  scope: RequestScope,
  adapters: Adapters,
  parts: ContextParts,
): PipelineContext {
  return new Session(scope, adapters, parts, scope.user).contextFor(undefined);
}

/** Creates the contexts of a run, which share its configuration session. */
export function createContexts(scope: RequestScope, adapters: Adapters, parts: ContextParts) {
  const session = new Session(scope, adapters, parts, scope.user);
  return {
    of: (owner: ContextOwner): PipelineContext =>
      new Context(session, session.log, undefined, owner),
  };
}

/**
 * Session of every `ctx` of a request. Members that most requests never use are created at first
 * access (`wrapped-no-log` in `bench/results.json`).
 */
class Session implements ReadingSession, DatabaseRequest {
  readonly runtime: Runtime;
  readonly scope: RequestScope;
  readonly parts: ContextParts;
  readonly user: User;
  readonly signal: AbortSignal | undefined;
  readonly log: Logger;
  known: HeldDecisions | undefined = undefined;
  readonly #adapters: Adapters;
  #computed: ComputedValues | undefined;
  #rows: RowView | undefined;
  #database: Database | undefined;
  #request: RequestView | undefined;

  constructor(scope: RequestScope, adapters: Adapters, parts: ContextParts, user: User) {
    this.runtime = scope.runtime;
    this.scope = scope;
    this.parts = parts;
    this.user = user;
    this.signal = scope.runSignal;
    this.#adapters = adapters;
    this.log = user === scope.user ? (parts.log ?? scope.log) : this.logFor(scope.handler);
  }

  get tenantId(): string | undefined {
    return this.user.tenantId;
  }

  get userId(): string | undefined {
    return this.user.id;
  }

  get handler(): string | undefined {
    return this.scope.handler;
  }

  get held(): HeldDecisions {
    this.known ??= new FewDecisions();
    return this.known;
  }

  get rows(): RowView {
    this.#rows ??= this.runtime.configRows.view(this, (read) =>
      this.log.warn("config.stale", { ...read }),
    );
    return this.#rows;
  }

  get computed(): ComputedValues {
    this.#computed ??= createComputedValues();
    return this.#computed;
  }

  get reads(): ConfigReads | undefined {
    return this.scope.reads;
  }

  get store() {
    return this.#adapters.configStore;
  }

  get quotas() {
    return this.#adapters.quotas;
  }

  get keptEvents() {
    return this.#adapters.keptEvents;
  }

  get cache() {
    return this.runtime.configRows;
  }

  get cipher() {
    return this.runtime.cipher;
  }

  get clock() {
    return this.runtime.clock;
  }

  get database(): Database {
    this.#database ??= this.#adapters.databaseFor(this);
    return this.#database;
  }

  // Uses the scope's `isSystem`, because a session for another owner belongs to the same run.
  acrossTenants(reason: string): Database {
    return openAcrossTenants(this, this.#adapters, this.scope.isSystem, reason);
  }

  get request(): RequestView | undefined {
    this.#request ??= this.parts.request?.();
    return this.#request;
  }

  sessionFor({ tenantId, userId }: RowOwner): OperatorSession {
    return new Session(this.scope, this.#adapters, this.parts, {
      ...anonymous,
      id: userId,
      tenantId,
    });
  }

  override(id: string): unknown {
    return this.runtime.resolver.override(id);
  }

  contextFor(node: ComputedNode | undefined): PipelineContext {
    return this.queryContext(node, this.log);
  }

  queryContext(node: ComputedNode | undefined, log: Logger): PipelineContext {
    return new Context(this, log, node, "query");
  }

  logFor(handler: string | undefined): Logger {
    return logOf(this.scope, handler, this.user);
  }
}

/**
 * Implementation of `ctx`. Its functions are properties, not methods, so that they work after
 * destructuring. They are own properties, so that `{ ...ctx }` copies them, except `request`,
 * `trace`, `rateLimit`, `publish`, `enqueue`, `cancelJob`, `step`, `delivery`, `events`, `metrics`
 * and `acrossTenants`, which most requests never use.
 */
class Context implements PipelineContext {
  readonly #session: Session;
  readonly #node: ComputedNode | undefined;
  readonly #owner: ContextOwner;
  readonly user: User;
  readonly log: Logger;
  readonly requestId: string;
  readonly config: PipelineContext["config"] = (handle, options) =>
    options === undefined
      ? readConfig(this.#session, handle, this.#node)
      : resolveConfigOrParam(this, handle, options.param, options);
  readonly query: PipelineContext["query"] = (query, input) =>
    runQuery(this.#session, nameOf(query), input, this.#node);
  readonly commit: PipelineContext["commit"] = (items, result) => {
    const { commits } = this.#session.parts;
    if (commits === undefined || this.#owner === "query")
      throw new Error("ctx.commit: a query reads; commit in a write");
    return commits.commit(this.#owner, items, result);
  };
  readonly db: Database;
  declare readonly signal?: AbortSignal;
  declare readonly request?: RequestView;
  declare readonly trace: Trace;
  declare readonly rateLimit: PipelineContext["rateLimit"];
  declare readonly publish: PipelineContext["publish"];
  declare readonly enqueue: PipelineContext["enqueue"];
  declare readonly cancelJob: PipelineContext["cancelJob"];
  declare readonly step: PipelineContext["step"];
  declare readonly delivery: PipelineContext["delivery"];
  declare readonly events: PipelineContext["events"];
  declare readonly metrics: PipelineContext["metrics"];
  declare readonly acrossTenants: PipelineContext["acrossTenants"];

  // On the prototype, because own accessors would take a fourteenth of a request's time.
  static {
    const member = (
      name: keyof PipelineContext,
      get: (session: Session, owner: ContextOwner) => unknown,
    ) =>
      Object.defineProperty(Context.prototype, name, {
        get(this: Context) {
          return get(this.#session, this.#owner);
        },
      });
    member("request", (session) => session.request);
    member("trace", (session) => session.scope.trace);
    for (const name of ["publish", "enqueue", "cancelJob", "step"] as const) {
      // Safe cast: each call passes on the arguments of the member of the same name.
      type Call = (...given: unknown[]) => Promise<unknown>;
      const isNamed = name === "publish" || name === "enqueue";
      member(name, (session, owner) => (first: unknown, ...more: unknown[]) => {
        const call = (effects: Effects) =>
          (effects[name] as Call)(isNamed ? nameOf(first) : first, ...more);
        return start(session, owner, name, call);
      });
    }
    member("delivery", (session, owner) => {
      const send = (channel: unknown, message: unknown, options?: SendOptions) =>
        start(session, owner, "delivery.send", (effects) =>
          effects.deliver(nameOf(channel), message, options),
        );
      return Object.freeze({ send });
    });
    // Safe cast: events are validated with the schema of their type when they are read.
    member("events", (session) => (event: unknown, range?: EventRange) => {
      return readEvents(session, nameOf(event), range) as never;
    });
    member("metrics", (session) => ownMetrics(session.runtime.metrics, session.log));
    member("rateLimit", (session) => rateLimitsOf(session));
    member("acrossTenants", (session) => (reason: string) => session.acrossTenants(reason));
  }

  constructor(session: Session, log: Logger, node: ComputedNode | undefined, owner: ContextOwner) {
    this.#session = session;
    this.#node = node;
    this.#owner = owner;
    this.user = session.user;
    this.log = log;
    this.requestId = session.scope.requestId;
    this.db = session.database;
    if (session.signal !== undefined) this.signal = session.signal;
    Object.freeze(this);
  }

  [quotaUse](): QuotaUse {
    const count: QuotaUse["count"] = (quota, change) =>
      start(this.#session, this.#owner, "quota.add", (effects) => effects.count(quota, change));
    return { nowMs: this.#session.clock.now(), count, store: this.#session.quotas.open };
  }

  [parameterUsed](id: string): void {
    this.#session.reads?.note(this.#session, id, "request", undefined);
  }
}

/** Throws synchronously in a query, so that a missing `await` hides no error. */
function start<Started>(
  { parts: { commits } }: Session,
  owner: ContextOwner,
  call: string,
  work: (effects: Effects) => Promise<Started>,
): Promise<Started> {
  if (commits === undefined || owner === "query")
    throw new Error(`ctx.${call}: a query reads; do it in a write, a consumer or a job`);
  return commits.start(owner, work);
}
