import type { Alarm } from "./alarm-part.ts";
import type { FunctionKind } from "./function-part.ts";
import type { NeededFunction } from "./functions.ts";
import type { TemplatePart } from "./template.ts";

/** What passes requests on to the function that answers them. */
export interface Front {
  /** Whether requests reach a Web Function, which runs the container. */
  readonly isWeb: boolean;
  /** Beside those of the code. */
  readonly parameters: readonly TemplatePart[];
  /** How functions that answer requests are made. */
  readonly requestKind: FunctionKind;
  /** How all other functions are made. */
  readonly eventKind: FunctionKind;
  readonly parts: (functions: readonly NeededFunction[], basePath: string) => TemplatePart[];
  /** The alarm for failed requests. */
  readonly errors: Pick<Alarm, "says" | "metric" | "of">;
}
