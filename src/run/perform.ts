import type { HandlerDeclaration } from "../declare/handler.ts";
import type { HttpRequest } from "../http/message.ts";
import type { Adapters } from "./adapters.ts";
import { type ContextFacts, createContext } from "./context.ts";
import { invoke } from "./invoke.ts";
import type { RequestScope } from "./scope.ts";

/** What a handler is run for; its caller may run it, and its input is accepted. */
export interface Performance
  extends Pick<ContextFacts, "user" | "signal" | "request">,
    Pick<HttpRequest, "deadlineMs" | "assertFits"> {
  readonly declaration: HandlerDeclaration;
  readonly input: unknown;
  /** What its schema was given, read again. */
  readonly given: () => unknown;
  /** Prototype-free, names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** A HEAD request. */
  readonly head: boolean;
}

/** Runs a query, and returns its result or a promise of it. */
export function runQuery(scope: RequestScope, adapters: Adapters, performance: Performance): unknown {
  const { runtime, requestId } = scope;
  const { declaration, user, signal, request, input } = performance;
  const ctx = createContext(runtime, adapters, { requestId, user, handler: declaration.name, signal, request });
  return invoke(declaration, ctx, input, runtime.environment);
}
