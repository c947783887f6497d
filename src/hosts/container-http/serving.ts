import type { Runtime } from "../../app/runtime/runtime.ts";
import type { ByteBudget } from "./byte-budget.ts";
import type { HttpSettings } from "./http-options.ts";
import type { UnreadBudget } from "./unread-bytes.ts";

/** What all requests of a server are served with. */
export interface Serving {
  readonly runtime: Runtime;
  readonly settings: HttpSettings;
  /** What requests hold of their bodies. */
  readonly bodies: ByteBudget;
  /** What connections hold for clients that do not read. */
  readonly unread: UnreadBudget;
}
