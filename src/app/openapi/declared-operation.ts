import type { ParsedRoute } from "../../parts/http/route.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import type { OwnOperation } from "./own-operations.ts";
import type { JsonSchema } from "./schema.ts";

/** Handler without its implementation. */
export type DeclaredHandler = Omit<HandlerDeclaration, "run">;

export interface DeclaredOperation {
  readonly route: ParsedRoute;
  /** In order. Routes with the same path use the parameter names of the first one. */
  readonly pathNames: readonly string[];
  readonly handler: DeclaredHandler;
  /** Set for keelson's own operations. */
  readonly own: OwnOperation | undefined;
  readonly input: JsonSchema | undefined;
  readonly output: JsonSchema | undefined;
  /** Whether `output` accepts `undefined`, which means an empty response. */
  readonly mayBeNothing: boolean;
}
