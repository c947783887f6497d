import { cascadeRows } from "./cascade.ts";
import { clientLogRows } from "./client-log.ts";
import { configKeyOptionRows } from "./config-key-options.ts";
import { configKeyRows } from "./config-keys.ts";
import { contextRows } from "./contexts.ts";
import { drainingRows } from "./draining.ts";
import { errorRows } from "./errors.ts";
import { eventRows } from "./events.ts";
import { identityRows } from "./identity.ts";
import { levelRows } from "./levels.ts";
import { loggingRows } from "./logging.ts";
import { notYet, reasons } from "./not-yet.ts";
import { onceRows } from "./once.ts";
import { operatorRows } from "./operators.ts";
import { resolverRows } from "./resolver.ts";
import type { Row } from "./row.ts";
import { shutdownRows } from "./shutdown.ts";

/** Every sentence with a row. */
export const rows: readonly Row[] = [
  ...configKeyRows,
  ...configKeyOptionRows,
  ...resolverRows,
  ...levelRows,
  ...cascadeRows,
  ...contextRows,
  ...loggingRows,
  ...errorRows,
  ...identityRows,
  ...operatorRows,
  ...drainingRows,
  ...shutdownRows,
  ...clientLogRows,
  ...onceRows,
  ...eventRows,
];

/** How many sentences of the specification are proved, how many are not, and why. */
export const counts = Object.freeze({
  withRow: rows.length,
  withoutRow: notYet.length,
  withoutRowByReason: Object.freeze(
    Object.fromEntries(
      Object.keys(reasons).map((reason) => [
        reason,
        notYet.filter(({ why }) => why === reason).length,
      ]),
    ),
  ),
});
