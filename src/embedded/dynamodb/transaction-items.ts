import { isRecord } from "../../base/errors/option-table.ts";
import type { Dynalite } from "../service/dynalite.ts";
import { invalidMember, validationError } from "../service/operation.ts";
import { type Input, ServiceError } from "../service/service.ts";

export interface CancellationReason {
  readonly Code: "None" | "ConditionalCheckFailed" | "ValidationError";
  readonly Message?: string;
  readonly Item?: object;
}

const maxItems = 100;
const maxBytes = 4 * 1024 * 1024;

export function transactItems(input: Input): readonly Input[] {
  const items = input["TransactItems"];
  if (!Array.isArray(items)) throw invalidMember(null, "transactItems", "not be null");
  if (items.length < 1)
    throw invalidMember("[]", "transactItems", "have length greater than or equal to 1");
  if (items.length > maxItems) {
    throw invalidMember(
      `[${items.length} items]`,
      "transactItems",
      `have length less than or equal to ${maxItems}`,
    );
  }
  return items.map((item: unknown, index) =>
    asStructure(item, `transactItems.${index + 1}.member`),
  );
}

export function asStructure(value: unknown, path: string): Input {
  if (!isRecord(value)) throw invalidMember(null, path, "not be null");
  return value;
}

export async function refuseSharedItems(
  dynalite: Dynalite,
  operations: readonly Parameters<typeof placeOf>[1][],
): Promise<void> {
  const seen = new Set<string>();
  for (const operation of operations) {
    const place = await placeOf(dynalite, operation);
    if (place !== undefined && seen.has(place)) {
      throw validationError("Transaction request cannot include multiple operations on one item");
    }
    if (place !== undefined) seen.add(place);
  }
}

export function refuseLargeTransaction(bytes: number): void {
  if (bytes > maxBytes)
    throw validationError(`Transaction payload size cannot exceed 4MB. Payload Size: ${bytes}`);
}

export function transactionCancelled(reasons: readonly CancellationReason[]): ServiceError {
  const codes = reasons.map(({ Code }) => Code).join(", ");
  return new ServiceError(
    "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
    `Transaction cancelled, please refer cancellation reasons for specific reasons [${codes}]`,
    { members: { CancellationReasons: reasons } },
  );
}

/** Only the table or the stored item could reveal such an error. */
export function validationReason(error: unknown): CancellationReason {
  if (!(error instanceof ServiceError) || !error.type.endsWith("#ValidationException")) throw error;
  return { Code: "ValidationError", Message: error.message };
}

/** Returns `undefined` for an invalid key, which its operation reports. */
async function placeOf(
  dynalite: Dynalite,
  { table, of }: { readonly table: string; readonly of: Parameters<Dynalite["placeOf"]>[1] },
): Promise<string | undefined> {
  const description = await dynalite.table(table);
  try {
    return `${table}/${dynalite.placeOf(description, of)}`;
  } catch {
    return undefined;
  }
}
