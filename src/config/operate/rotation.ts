import { AccessDeniedError } from "../../errors/errors.ts";
import { access, allows } from "../../identity/access.ts";
import type { Logger } from "../../log/logger.ts";
import type { SealedRow } from "./config-store.ts";
import { available, type OperatorContext, type OperatorSession, openOperatorSession } from "./operator-session.ts";

/** How far a rotation has come. */
export interface RotationProgress {
  /** The key of the ring that everything is sealed with. */
  readonly activeKey: string;
  /** Items of the table that were looked at. */
  readonly scanned: number;
  /** Rows that were sealed anew. */
  readonly resealed: number;
  /** Rows that somebody wrote meanwhile; the next run looks at them again. */
  readonly overtaken: number;
  /** Rows that do not open with any key of the ring; each is logged as `config.secret_locked`. */
  readonly locked: number;
  /** Where to go on with `from`; absent once the whole table was looked at. */
  readonly next?: string;
}

/** Options of {@link rotateConfigKeys}. */
export interface RotationOptions {
  /** `next` of an earlier progress: goes on there. Default: the whole table. */
  readonly from?: string | undefined;
  /** Told after each page of the table; what it throws ends the run, and nothing is lost. */
  readonly onProgress?: ((progress: RotationProgress) => void | Promise<void>) | undefined;
}

/**
 * Seals every stored secret of all tenants with the active key of the ring, and for the version of its row where
 * `keyRing.bindVersion` says so. It may be interrupted and started again at any time: what is sealed so already is
 * left alone, each row is replaced only where nobody has written it meanwhile, and every row can be read all the while.
 * The values, their versions and their history stay as they are.
 *
 * An earlier key of the ring is not used any more once a whole run has come back with `resealed`,
 * `overtaken` and `locked` at 0, 10 seconds or more after the active key was changed.
 *
 * @throws AccessDeniedError without `access.systemAdmin`; ValidationError for a `from` that is none;
 * PipelineError 501 `no_key_ring`; FrameworkError `config_unavailable` where the store or the key ring fails.
 * @example
 * const { resealed, locked } = await rotateConfigKeys(ctx, {
 *   onProgress: ({ scanned, resealed }) => console.log(`${scanned} items, ${resealed} sealed anew`),
 * });
 */
export async function rotateConfigKeys(ctx: OperatorContext, options: RotationOptions = {}): Promise<RotationProgress> {
  if (!allows(access.systemAdmin, ctx.user)) throw new AccessDeniedError("to rotate keys takes systemAdmin");
  const progress = await rotateRows(openOperatorSession(ctx, { tenantId: undefined, userId: undefined }), options);
  ctx.log.info("config.keys_rotated", { ...progress });
  return progress;
}

/** What a rotation works on. */
export type Rotation = Pick<OperatorSession, "store" | "cipher"> & { readonly log: Pick<Logger, "warn"> };

/** The same without a caller. @throws as {@link rotateConfigKeys}. */
export async function rotateRows(rotation: Rotation, { from, onProgress }: RotationOptions): Promise<RotationProgress> {
  const { store, cipher } = rotation;
  const counts = { scanned: 0, resealed: 0, overtaken: 0, locked: 0 };
  let next = from;
  // A key that was activated a moment ago would be met as one that nobody knows.
  await cipher.refresh();
  for (;;) {
    const activeKey = await cipher.active();
    const start = next;
    const page = await available("read", () => store.sealedRows(start));
    for (const row of page.rows) {
      if (!cipher.isOutdated(row.value, activeKey)) continue;
      counts[await resealRow(rotation, row)]++;
    }
    counts.scanned += page.scanned;
    next = page.next;
    const progress: RotationProgress = { activeKey, ...counts, ...(next === undefined ? {} : { next }) };
    await onProgress?.(progress);
    if (next === undefined) return progress;
  }
}

async function resealRow({ store, cipher, log }: Rotation, row: SealedRow): Promise<"resealed" | "overtaken" | "locked"> {
  const { partition, key } = row.address;
  const value = await cipher.reseal(row);
  if (value === undefined) {
    log.warn("config.secret_locked", { partition, key, ringKey: row.value.key });
    return "locked";
  }
  return (await available("written", () => store.reseal(row, value))) ? "resealed" : "overtaken";
}
