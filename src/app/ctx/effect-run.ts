import type { Logger } from "../../base/log/logger.ts";
import type { Cause } from "../../parts/messages/envelope.ts";
import type { OutboxRow } from "../../parts/messages/outbox-store.ts";
import type { TransactionItem } from "../../parts/once/claim-store.ts";
import type { RunParts } from "../../parts/once/claimed-run.ts";
import { derivedId } from "../../parts/once/derived-id.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { RunServices } from "../runtime/run-services.ts";
import type { RequestScope } from "../runtime/scope.ts";
import type { EffectLedger } from "./effect-ledger.ts";

/** Effect that joins the commit of its run. */
export interface HeldEffect {
  readonly kind: "event" | "job" | "delivery";
  /** Type of an event, name of a job, or channel of a delivery. */
  readonly name: string;
  readonly row: OutboxRow;
  /** Stores a kept event, in addition to its outbox row. */
  readonly kept?: TransactionItem | undefined;
}

/** The ledger holds the effects that join the commit. */
export interface EffectRun {
  readonly scope: RequestScope;
  readonly log: Logger;
  readonly adapters: Adapters;
  readonly runs: RunServices;
  readonly run: RunParts;
  readonly cause: Cause;
  readonly ledger: EffectLedger<HeldEffect>;
}

/**
 * Derives an ID from the run, the kind, the name, and the number of earlier effects of that name.
 */
export function deriveId(run: EffectRun, kind: string, name: string): string {
  return derivedId(...idParts(run, kind, name));
}

/** Returns the parts of {@link deriveId}'s ID, and counts the effect. */
export function idParts(
  { run, ledger }: EffectRun,
  kind: string,
  name: string,
): readonly (string | number)[] {
  return [run.seed(), kind, name, ledger.ordinal(kind, name)];
}

export function misfit(call: string, what: string, problems: string): TypeError {
  return new TypeError(`${call}: ${what} does not fit its schema (${problems})`);
}
