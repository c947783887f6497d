import type { LockedKey } from "../contract/locked-keys.ts";
import type { StoredReport } from "../contract/stored-rows.ts";
import type { DeclaredServer } from "../declare/declared-server.ts";
import type { CommandContext } from "./command-context.ts";

/** What is looked at, and how. */
export interface StoredRowsOptions {
  readonly server: DeclaredServer;
  /** The keys of the lock. Values of one that was encrypted are never shown. */
  readonly locked: readonly LockedKey[];
  /** The server's variables: region, credentials, endpoints, names of tables. */
  readonly env: CommandContext["env"];
  /** Shows how far it is; `""` shows nothing. */
  readonly progress?: CommandContext["progress"];
  /** How many rows are listed. Default 1,000. */
  readonly limit?: number;
}

/**
 * Reads the configuration rows of the environment, page by page, and says what becomes of those that do not fit. Writes nothing.
 *
 * @throws Error where the table, or the parameters that the server names, cannot be read.
 */
export async function storedRows(_options: StoredRowsOptions): Promise<StoredReport> {
  throw new Error("not yet");
}
