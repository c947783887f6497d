import type { ParsedRoute } from "../../parts/http/route.ts";
import type { HandlerDeclaration } from "../features/handler.ts";
import type { OwnOperation } from "./own-operations.ts";
import type { JsonSchema } from "./schema.ts";

/** A handler as its contract has it: what it declares, without what it does. */
export type DeclaredHandler = Omit<HandlerDeclaration, "run">;

/** A handler with its route, and what is known of it beside its declaration. */
export interface DeclaredOperation {
  readonly route: ParsedRoute;
  /** The names of the route's parameters in the document, in their order: routes of one path have those of the first. */
  readonly pathNames: readonly string[];
  readonly handler: DeclaredHandler;
  /** Of keelson's own. */
  readonly own: OwnOperation | undefined;
  /** Its schemas, as far as it has any. */
  readonly input: JsonSchema | undefined;
  readonly output: JsonSchema | undefined;
  /** Whether `output` takes `undefined`, as nothing does. */
  readonly mayBeNothing: boolean;
}
