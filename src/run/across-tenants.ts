import type { Database } from "../context/database.ts";
import { AccessDeniedError } from "../errors/errors.ts";
import { quoted } from "../errors/quoted.ts";
import { access, allows } from "../identity/access.ts";
import type { User } from "../identity/user.ts";
import type { Logger } from "../log/logger.ts";
import type { Adapters, DatabaseRequest } from "./adapters.ts";

/** Who asks for the rows of every tenant. */
interface Asking extends DatabaseRequest {
  readonly user: User;
  readonly log: Logger;
}

/**
 * Opens a database without the wall, for callers with `systemAdmin` and for system runs: no request has led to them, and they have no tenant.
 *
 * @throws AccessDeniedError for anybody else; TypeError without a reason.
 */
export function openAcrossTenants(
  asking: Asking,
  adapters: Adapters,
  isSystem: boolean,
  reason: string,
): Database {
  const { user, log } = asking;
  if (!isSystem && !allows(access.systemAdmin, user)) {
    throw new AccessDeniedError("ctx.acrossTenants takes systemAdmin");
  }
  if (typeof reason !== "string" || reason.trim() === "") {
    throw new TypeError(
      `ctx.acrossTenants: the reason is ${quoted(reason)}; say in a text what the rows of every tenant are for`,
    );
  }
  log.warn("tenant.crossed", { reason });
  return adapters.databaseAcrossTenants(asking);
}
