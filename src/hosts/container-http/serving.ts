import type { Runtime } from "../../app/runtime/runtime.ts";
import type { PipelineError } from "../../base/errors/errors.ts";
import type { ByteBudget } from "./byte-budget.ts";
import type { HttpSettings } from "./http-options.ts";
import type { UnreadBudget } from "./unread-bytes.ts";

export interface Serving {
  readonly runtime: Runtime;
  readonly routes: Runtime["routes"];
  readonly settings: HttpSettings;
  readonly bodies: ByteBudget;
  readonly unread: UnreadBudget;
}

export interface Beginning {
  /**
   * Creates the error of a refused request; `undefined` if it is accepted. Errors are created on
   * demand, because that takes time and most waiting requests never run.
   */
  readonly refuse: (() => PipelineError) | undefined;
  readonly expectsContinue: boolean;
}
