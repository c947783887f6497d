import type { ConfigSource } from "./cascade.ts";
import type { RowOwner } from "./rows.ts";

/** Where the value of a read key came from: a level of the cascade, or the parameter of the request. */
export type ReadSource = ConfigSource | "request";

/** Notes which keys a request reads. */
export interface ConfigReads {
  /**
   * @param owner - for whom the key was read.
   * @param version - of the row that supplied the value; `undefined` where none did.
   */
  note(owner: RowOwner, id: string, source: ReadSource, version: number | undefined): void;
}

/** Under this member a `ctx` notes that a parameter took the place of a configured value. */
export const parameterUsed: unique symbol = Symbol("keelson.parameterUsed");

/** A `ctx` that notes it; those of tests may not. */
export interface NotesParameters {
  [parameterUsed]?(id: string): void;
}
