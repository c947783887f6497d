import type { Runtime } from "../../app/runtime/runtime.ts";
import type { ByteBudget } from "./byte-budget.ts";
import type { HttpSettings } from "./http-options.ts";
import type { UnreadBudget } from "./unread-bytes.ts";

/** State shared by all requests of a server. */
export interface Serving {
  readonly runtime: Runtime;
  readonly settings: HttpSettings;
  /** Limit for the request bodies in memory. */
  readonly bodies: ByteBudget;
  /** Limit for the data held for clients that do not read. */
  readonly unread: UnreadBudget;
}
