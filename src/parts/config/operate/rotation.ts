import { AccessDeniedError } from "../../../base/errors/errors.ts";
import { access, allows } from "../../../base/identity/access.ts";
import type { Logger } from "../../../base/log/logger.ts";
import { defined } from "../../../base/types/defined.ts";
import type { SealedRow } from "../read/row-cipher.ts";
import {
  callStore,
  type OperatorContext,
  type OperatorSession,
  openOperatorSession,
} from "./operator-session.ts";

/** Progress of {@link rotateConfigKeys}. */
export interface RotationProgress {
  /** Name of the active key, which encrypts all new values. */
  readonly activeKey: string;
  /** Number of table items read so far. */
  readonly scanned: number;
  /** Number of re-encrypted rows. */
  readonly resealed: number;
  /** Number of rows that another write changed during the run; start another run for them. */
  readonly overtaken: number;
  /** Number of rows that no key can decrypt, each logged as `config.secret_locked`. */
  readonly locked: number;
  /** Value for `from` to continue; absent at the end of the table. */
  readonly next?: string;
}

/** Options of {@link rotateConfigKeys}. */
export interface RotationOptions {
  /** Continues an earlier run from its `next`. Default: the whole table. */
  readonly from?: string | undefined;
  /** Called after each page of the table. If it throws, the run ends and no progress is lost. */
  readonly onProgress?: ((progress: RotationProgress) => void | Promise<void>) | undefined;
}

/**
 * Re-encrypts every stored secret of all tenants with the active key, and binds it to its row's
 * version if `keyRing.bindVersion` is on. A run may be interrupted and started again at any time: it
 * skips rows that are done, and never replaces a row that was written during the run. Every row
 * stays readable; values, versions and history do not change.
 *
 * An earlier key is no longer in use once a whole run, started at least 10 seconds after the active
 * key changed, returns 0 for `resealed`, `overtaken` and `locked`.
 * @throws AccessDeniedError without `access.systemAdmin`; ValidationError for an invalid `from`;
 * PipelineError 501 `no_key_ring`; FrameworkError `config_unavailable` if the store or the key ring
 * fails.
 * @example
 * const { resealed, locked } = await rotateConfigKeys(ctx, {
 *   onProgress: ({ scanned, resealed }) => console.log(`${scanned} items, ${resealed} sealed anew`),
 * });
 */
export async function rotateConfigKeys(
  ctx: OperatorContext,
  options: RotationOptions = {},
): Promise<RotationProgress> {
  if (!allows(access.systemAdmin, ctx.user))
    throw new AccessDeniedError("to rotate keys takes systemAdmin");
  const session = openOperatorSession(ctx, { tenantId: undefined, userId: undefined });
  const progress = await rotateRows(session, options);
  ctx.log.info("config.keys_rotated", { ...progress });
  return progress;
}

type Rotation = Pick<OperatorSession, "store" | "cipher"> & {
  readonly log: Pick<Logger, "warn">;
};

export async function rotateRows(
  rotation: Rotation,
  { from, onProgress }: RotationOptions,
): Promise<RotationProgress> {
  const { store, cipher } = rotation;
  const counts = { scanned: 0, resealed: 0, overtaken: 0, locked: 0 };
  let next = from;
  // Otherwise a key that was activated a moment ago would be unknown.
  await cipher.refresh();
  for (;;) {
    const activeKey = await cipher.active();
    const start = next;
    const page = await callStore("read", () => store.sealedRows(start));
    for (const row of page.rows) {
      if (!cipher.isOutdated(row.value, activeKey)) continue;
      counts[await resealRow(rotation, row)]++;
    }
    counts.scanned += page.scanned;
    next = page.next;
    const progress: RotationProgress = { activeKey, ...counts, ...defined({ next }) };
    await onProgress?.(progress);
    if (next === undefined) return progress;
  }
}

async function resealRow(
  { store, cipher, log }: Rotation,
  row: SealedRow,
): Promise<"resealed" | "overtaken" | "locked"> {
  const { partition, key } = row.address;
  const value = await cipher.reseal(row);
  if (value === undefined) {
    log.warn("config.secret_locked", { partition, key, ringKey: row.value.key });
    return "locked";
  }
  return (await callStore("written", () => store.reseal(row, value))) ? "resealed" : "overtaken";
}
