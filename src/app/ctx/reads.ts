import type { User } from "../../base/identity/access.ts";
import { assertAllowed } from "../../base/identity/assert-allowed.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { Database } from "../../base/types/database.ts";
import type { ConfigKeyHandle } from "../../parts/config/declare/key.ts";
import type { OperatorSession } from "../../parts/config/operate/operator-session.ts";
import type { Resolved } from "../../parts/config/read/cascade.ts";
import type { ComputedNode } from "../../parts/config/read/computed-values.ts";
import type { Decision, HeldDecisions } from "../../parts/config/read/key-rows.ts";
import { validateInput } from "../../parts/http/input.ts";
import { bodyOf } from "../../parts/http/response.ts";
import type { EventRange, KeptEvent } from "../../parts/messages/kept-events.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { RateLimitAccessor } from "../handlers/rate-limit.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { RequestScope } from "../runtime/scope.ts";
import { receiveResult } from "./check-output.ts";

export interface ReadingSession extends OperatorSession {
  readonly runtime: Pick<Runtime, "server" | "resolver" | "clock">;
  readonly scope: RequestScope;
  readonly user: User;
  readonly database: Database;
  readonly signal: AbortSignal | undefined;
  /** Absent until the request reads a key. */
  readonly known: HeldDecisions | undefined;
  readonly keptEvents: Adapters["keptEvents"];
  logFor(handler: string | undefined): Logger;
  queryContext(node: ComputedNode | undefined, log: Logger): PipelineContext;
}

/** Reads the value of a key (`ctx.config`). */
export function readConfig<Value>(
  session: ReadingSession,
  handle: ConfigKeyHandle<Value>,
  node: ComputedNode | undefined,
): Promise<Value> {
  const held = session.known?.get(handle?.id);
  if (held !== undefined) {
    const nowMs = session.clock.now();
    // Safe cast: the resolver returns only values that match the key's declaration.
    if (nowMs < held.untilMs && held.rows.isHeld(nowMs)) return held.value as Promise<Value>;
  }
  const key = session.runtime.server.registry.configKeys.get(handle?.id);
  if (key === undefined) {
    const what = `ctx.config: ${String(handle?.id)} is declared by no feature of this server; add its feature to buildServer`;
    return Promise.reject(new Error(what));
  }
  const resolved = session.runtime.resolver.resolve(session, key.id, key.definition, node);
  // Safe casts: values match the key's declaration, and before the resolver returns synchronously,
  // it stores its decision in `known`. The decision's value is one promise for all readers.
  if (resolved instanceof Promise) return resolved.then(plainValue) as Promise<Value>;
  const { value } = (session.known as HeldDecisions).get(key.id) as Decision;
  return value as Promise<Value>;
}

function plainValue({ value }: Resolved): unknown {
  return value;
}

/** Reads kept events (`ctx.events`), by code that few handlers need. */
export async function* readEvents(
  session: ReadingSession,
  type: string,
  range: EventRange | undefined,
): AsyncGenerator<KeptEvent> {
  const { tenantEvents } = await import("./tenant-events.ts");
  yield* tenantEvents(session, session.keptEvents, type, range);
}

/** Runs another query of the server (`ctx.query`). */
export async function runQuery(
  session: ReadingSession,
  name: string,
  input: unknown,
  node: ComputedNode | undefined,
): Promise<never> {
  const { runtime } = session;
  const declaration = runtime.server.registry.handlers.get(name);
  if (declaration?.kind !== "query")
    throw new Error(
      `ctx.query: no feature of this server declares the query ${String(name)}; check the name, or add its feature to buildServer`,
    );
  // The handler may rely on its own access rule for every caller.
  if (declaration.access !== undefined)
    assertAllowed(declaration.access, session.user, declaration.name);
  const ctx = session.queryContext(node, session.logFor(declaration.name));
  const accepted = await validateInput(declaration.input, input);
  const result = await receiveResult(declaration, declaration.run(ctx, accepted), session.scope, {
    log: ctx.log,
  });
  // Safe cast: the query declares this type, and its schema produces it.
  return bodyOf(result) as never;
}

/** Takes from declared limits (`ctx.rateLimit`), by code that few handlers need. */
export function rateLimitsOf(session: ReadingSession): RateLimitAccessor {
  const { scope } = session;
  const call =
    (name: "take" | "assertTaken"): RateLimitAccessor["take"] =>
    async (...given) => {
      const limits = await scope.runtime.limits.open();
      return limits[name](
        scope,
        session.queryContext(undefined, session.logFor(scope.handler)),
        ...given,
      );
    };
  return Object.freeze({ take: call("assertTaken"), tryTake: call("take") });
}
