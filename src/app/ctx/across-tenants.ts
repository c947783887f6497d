import { AccessDeniedError } from "../../base/errors/errors.ts";
import { quoted } from "../../base/errors/quoted.ts";
import { access, allows, type User } from "../../base/identity/access.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { Database } from "../../base/types/database.ts";
import type { Adapters, DatabaseRequest } from "../runtime/adapters.ts";

interface Asking extends DatabaseRequest {
  readonly user: User;
  readonly log: Logger;
}

/**
 * Opens a database that reaches every tenant's rows, for callers with `systemAdmin` and for system
 * runs, which no request has caused and which have no tenant.
 *
 * @throws AccessDeniedError for any other caller; TypeError if `reason` is empty.
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
