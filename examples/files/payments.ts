/** A charge: the plan of a tenant for a month. */
export interface Charge {
  readonly tenantId: string;
  /** For example `2026-11`. */
  readonly month: string;
  readonly cents: number;
}

/** Charges once for equal keys, even if it is called several times. */
export type ChargePlan = (
  charge: Charge,
  idempotencyKey: string,
) => Promise<{ readonly id: string }>;

/** Replaces a payment provider; does not charge any money. */
export const chargeNobody: ChargePlan = async (_charge, idempotencyKey) => ({
  id: `nobody-${idempotencyKey}`,
});
