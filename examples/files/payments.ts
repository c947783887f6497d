/** What is charged: the plan of a tenant, for a month. */
export interface Charge {
  readonly tenantId: string;
  /** For example `2026-11`. */
  readonly month: string;
  readonly cents: number;
}

/** Charges, and once for equal keys, however often it is called. */
export type ChargePlan = (
  charge: Charge,
  idempotencyKey: string,
) => Promise<{ readonly id: string }>;

/** Stands in for a payment provider: nobody pays. */
export const chargeNobody: ChargePlan = async (_charge, idempotencyKey) => ({
  id: `nobody-${idempotencyKey}`,
});
