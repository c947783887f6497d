import { requestDatabase } from "../aws/request-database.ts";
import { type ComputedNode, createComputedValues } from "../config/computed.ts";
import type { ConfigKeyHandle } from "../config/declaration.ts";
import type { RowView } from "../config/key-rows.ts";
import { type OperatorSession, operatorSession } from "../config/operator-session.ts";
import { type ConfigSession, configSession } from "../config/resolver.ts";
import type { CommitItem, PipelineContext, RequestView } from "../context/pipeline-context.ts";
import { isReply } from "../http/reply.ts";
import type { User } from "../identity/user.ts";
import type { Logger } from "../log/logger.ts";
import { acceptInput, invoke } from "./invoke.ts";
import type { Adapters, Runtime } from "./runtime.ts";

/** What a `ctx` is made of. */
export interface ContextFacts {
  readonly requestId: string;
  readonly user: User;
  /** The full name of the handler. */
  readonly handler: string;
  readonly signal?: AbortSignal | undefined;
  readonly request?: RequestView | undefined;
  /** Commits the run; absent in a query. */
  readonly commit?: CommitResult | undefined;
}

/** Commits items with what a handler returns. */
export type CommitResult = (items: readonly CommitItem[], result: unknown) => Promise<void>;

/** Makes the `ctx` of one request (specification 2.6). The adapters are open. */
export function createContext(runtime: Runtime, adapters: Adapters, facts: ContextFacts): PipelineContext {
  return openSession(runtime, adapters, facts).contextFor(undefined);
}

interface Session extends OperatorSession {
  contextFor(node: ComputedNode | undefined): PipelineContext;
}

/** Opens the configuration session of one request; every `ctx` of the request comes from it. */
function openSession(runtime: Runtime, adapters: Adapters, facts: ContextFacts): Session {
  const { requestId, user } = facts;
  const base = runtime.log.child({ requestId, tenantId: user.tenantId, userId: user.id });
  let rows: RowView | undefined;
  const session: Session = {
    tenantId: user.tenantId,
    userId: user.id,
    get rows() {
      rows ??= runtime.configRows.view({ tenantId: user.tenantId, userId: user.id }, (read) =>
        session.log.warn("config.stale", { ...read }),
      );
      return rows;
    },
    store: adapters.configStore,
    kept: runtime.configRows,
    cipher: runtime.cipher,
    override: (id) => runtime.resolver.override(id),
    clock: runtime.clock,
    log: base.child({ handler: facts.handler }),
    computed: createComputedValues(),
    held: new Map(),
    contextFor: (node) => build(session.log, node),
  };
  return session;

  async function readConfig<Value>(handle: ConfigKeyHandle<Value>, node: ComputedNode | undefined): Promise<Value> {
    const key = runtime.server.registry.configKeys.get(handle?.id);
    if (key === undefined) {
      throw new Error(
        `ctx.config: ${String(handle?.id)} is declared by no feature of this server; add its feature to buildServer`,
      );
    }
    const resolved = runtime.resolver.resolve(session, key.id, key.definition, node);
    const { value } = resolved instanceof Promise ? await resolved : resolved;
    // Safe: a value that does not fit the declaration never leaves the resolver.
    return value as Value;
  }

  function build(log: Logger, node: ComputedNode | undefined): PipelineContext {
    let db: PipelineContext["db"] | undefined;
    const openFor = ({ tenantId, userId }: Pick<ConfigSession, "tenantId" | "userId">): Session =>
      openSession(runtime, adapters, { ...facts, user: { id: userId, tenantId, roles: [] } });
    return Object.freeze<PipelineContext>({
      get db() {
        db ??= requestDatabase(adapters.database, facts.signal, {
          [configSession]: openFor,
          [operatorSession]: openFor,
        });
        return db;
      },
      user,
      log,
      requestId,
      config: <Value>(handle: ConfigKeyHandle<Value>): Promise<Value> => {
        const held = session.held.get(handle?.id);
        if (held !== undefined) {
          const nowMs = runtime.clock.now();
          // Safe: a value that does not fit the declaration never leaves the resolver.
          if (nowMs < held.untilMs && held.rows.isHeld(nowMs)) return held.value as Promise<Value>;
        }
        return readConfig(handle, node);
      },
      query: async (name, input) => {
        const declaration = runtime.server.registry.handlers.get(name);
        if (declaration?.kind !== "query") {
          throw new Error(
            `ctx.query: no feature of this server declares the query ${String(name)}; check the name, or add its feature to buildServer`,
          );
        }
        const ctx = build(base.child({ handler: declaration.name }), node);
        const result = await invoke(declaration, ctx, await acceptInput(declaration, input), runtime.environment);
        // Safe: the query's own declaration promises this type; outside production it was checked.
        return (isReply(result) ? result.body : result) as never;
      },
      commit: async (items, result) => {
        if (facts.commit === undefined) throw new Error("ctx.commit: a query reads; commit in a write");
        await facts.commit(items, result);
        return result;
      },
      ...(facts.signal === undefined ? {} : { signal: facts.signal }),
      ...(facts.request === undefined ? {} : { request: facts.request }),
    });
  }
}
