import type { Runtime } from "../../app/runtime/runtime.ts";
import type { PipelineError } from "../../base/errors/errors.ts";
import type { ByteBudget } from "./byte-budget.ts";
import type { HttpSettings } from "./http-options.ts";
import type { UnreadBudget } from "./unread-bytes.ts";

/** State shared by all requests of a server. */
export interface Serving {
  readonly runtime: Runtime;
  readonly routes: Runtime["routes"];
  readonly settings: HttpSettings;
  /** Limit for the request bodies in memory. */
  readonly bodies: ByteBudget;
  /** Limit for the data held for clients that do not read. */
  readonly unread: UnreadBudget;
}

export interface Beginning {
  /**
   * Creates the error of a refused request; `undefined` if the request is accepted. A function,
   * because an error takes time to create and most waiting requests never run.
   */
  readonly refuse: (() => PipelineError) | undefined;
  /** Whether the client waits for `100 Continue` before it sends the body. */
  readonly expectsContinue: boolean;
}
