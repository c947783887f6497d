import { isRecord } from "../../base/errors/option-table.ts";
import type { Addressed, Dynalite } from "../service/dynalite.ts";
import {
  dynamoDbError,
  invalidMember,
  missingMember,
  validationError,
} from "../service/operation.ts";
import { type Input, ServiceError } from "../service/service.ts";

export interface CancellationReason {
  readonly Code: "None" | "ConditionalCheckFailed" | "ValidationError";
  readonly Message?: string;
  readonly Item?: object;
}

interface TransactItem {
  readonly item: Input;
  /** Path in error messages: `transactItems.1.member`. */
  readonly path: string;
}

interface Operation {
  readonly table: string;
  readonly of: Addressed;
}

const maxItems = 100;
const maxBytes = 4 * 1024 * 1024;

export function transactItems({ TransactItems: items }: Input): readonly TransactItem[] {
  const path = "transactItems";
  if (!Array.isArray(items)) throw missingMember(path);
  if (items.length < 1) throw invalidMember("[]", path, "have length greater than or equal to 1");
  if (items.length > maxItems) {
    const constraint = `have length less than or equal to ${maxItems}`;
    throw invalidMember(`[${items.length} items]`, path, constraint);
  }
  return items.map((item: unknown, index) => {
    const member = `${path}.${index + 1}.member`;
    return { item: asStructure(item, member), path: member };
  });
}

export function asStructure(value: unknown, path: string): Input {
  if (!isRecord(value)) throw missingMember(path);
  return value;
}

/** @throws ServiceError if two operations use one item, or with the reasons of all failures. */
export async function runAll<Prepared extends Operation, Answer>(
  dynalite: Dynalite,
  operations: readonly Prepared[],
  run: (operation: Prepared) => Promise<Answer>,
  reasonOf: (
    error: unknown,
    operation: Prepared,
  ) => CancellationReason | Promise<CancellationReason> = validationReason,
): Promise<readonly Answer[]> {
  await refuseSharedItems(dynalite, operations);
  const answers: Answer[] = [];
  const reasons: CancellationReason[] = [];
  for (const operation of operations) {
    try {
      answers.push(await run(operation));
      reasons.push({ Code: "None" });
    } catch (error) {
      reasons.push(await reasonOf(error, operation));
    }
  }
  if (answers.length === operations.length) return answers;
  const codes = reasons.map(({ Code }) => Code).join(", ");
  throw dynamoDbError(
    "TransactionCanceledException",
    `Transaction cancelled, please refer cancellation reasons for specific reasons [${codes}]`,
    { CancellationReasons: reasons },
  );
}

export function refuseLargeTransaction(sizes: readonly number[]): void {
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  if (bytes > maxBytes)
    throw validationError(`Transaction payload size cannot exceed 4MB. Payload Size: ${bytes}`);
}

export function validationReason(error: unknown): CancellationReason {
  if (!(error instanceof ServiceError) || !error.type.endsWith("#ValidationException")) throw error;
  return { Code: "ValidationError", Message: error.message };
}

async function refuseSharedItems(dynalite: Dynalite, operations: readonly Operation[]) {
  const seen = new Set<string>();
  for (const operation of operations) {
    const place = await placeOf(dynalite, operation);
    if (place === undefined) continue;
    if (seen.has(place))
      throw validationError("Transaction request cannot include multiple operations on one item");
    seen.add(place);
  }
}

/** Returns `undefined` for an invalid key, which the operation itself reports. */
async function placeOf(dynalite: Dynalite, { table, of }: Operation) {
  const description = await dynalite.table(table);
  try {
    return `${table}/${dynalite.placeOf(description, of)}`;
  } catch {
    return undefined;
  }
}
