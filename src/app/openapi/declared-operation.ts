import type { ParsedRoute } from "../../parts/http/route.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import type { OwnOperation } from "./own-operations.ts";
import type { JsonSchema } from "./schema.ts";

export type DeclaredHandler = Omit<HandlerDeclaration, "run">;

export interface DeclaredOperation {
  readonly route: ParsedRoute;
  /** Path parameters in order. Routes with the same path use the names of the first route. */
  readonly pathNames: readonly string[];
  readonly handler: DeclaredHandler;
  readonly own: OwnOperation | undefined;
  readonly input: JsonSchema | undefined;
  readonly output: JsonSchema | undefined;
  readonly mayBeNothing: boolean;
}
