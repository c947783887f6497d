import type { ParsedRoute } from "../../parts/http/route.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import type { OwnOperation } from "./own-operations.ts";
import type { JsonSchema } from "./schema.ts";

/** Handler without its implementation. */
export type DeclaredHandler = Omit<HandlerDeclaration, "run">;

/** Handler with its route, and facts that its declaration does not contain. */
export interface DeclaredOperation {
  readonly route: ParsedRoute;
  /**
   * Parameter names of the route in the document, in order. Routes with the same path use the names
   * of the first one.
   */
  readonly pathNames: readonly string[];
  readonly handler: DeclaredHandler;
  /** Set for keelson's own operations. */
  readonly own: OwnOperation | undefined;
  /** Input schema. Like `output`, it is `undefined` if the handler does not declare one. */
  readonly input: JsonSchema | undefined;
  readonly output: JsonSchema | undefined;
  /** Whether `output` accepts `undefined`, which means an empty response. */
  readonly mayBeNothing: boolean;
}
