import type { Alarm } from "./alarm-part.ts";
import type { FunctionKind } from "./function-part.ts";
import type { NeededFunction } from "./functions.ts";
import type { TemplatePart } from "./template.ts";

/** Passes requests on to the function that answers them. */
export interface Front {
  /** Whether requests reach a Web Function, which runs the container. */
  readonly isWeb: boolean;
  /** In addition to the parameters of the code. */
  readonly parameters: readonly TemplatePart[];
  /** Kind of the functions that answer requests. */
  readonly requestKind: FunctionKind;
  /** Kind of all other functions. */
  readonly eventKind: FunctionKind;
  readonly parts: (functions: readonly NeededFunction[], basePath: string) => TemplatePart[];
  /** The alarm for failed requests. */
  readonly errors: Pick<Alarm, "says" | "page" | "metric" | "of">;
}
