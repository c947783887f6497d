import type { ConfigSource } from "./cascade.ts";
import type { RowOwner } from "./rows.ts";

/** Source of a value that was read: a level of the cascade, or a request parameter. */
export type ReadSource = ConfigSource | "request";

/** Records which keys a request reads. */
export interface ConfigReads {
  /**
   * @param owner - the tenant and user that the key was read for.
   * @param version - version of the row that supplied the value; `undefined` if no row did.
   */
  note(owner: RowOwner, id: string, source: ReadSource, version: number | undefined): void;
}

/** Member of a `ctx` that records that a request parameter replaced a configured value. */
export const parameterUsed: unique symbol = Symbol("keelson.parameterUsed");

/** `ctx` that records request parameters. The `ctx` of a test may lack the member. */
export interface NotesParameters {
  [parameterUsed]?(id: string): void;
}
