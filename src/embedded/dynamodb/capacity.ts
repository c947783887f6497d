import { isRecord } from "../../base/errors/option-table.ts";
import type { Input } from "../service/service.ts";

export interface Consumed {
  readonly TableName: string;
  readonly CapacityUnits: number;
}

/** dynalite checks the value as part of each item's own request. */
export function askedCapacity({ ReturnConsumedCapacity: asked }: Input) {
  return asked === undefined ? {} : { ReturnConsumedCapacity: asked };
}

/** A transaction prepares and commits each item, so it consumes twice the units of single requests. */
export function capacityOfTransaction(answers: readonly Readonly<Record<string, unknown>>[]) {
  const units = new Map<string, number>();
  for (const { ConsumedCapacity } of answers) {
    if (!isRecord(ConsumedCapacity)) continue;
    const { TableName, CapacityUnits } = ConsumedCapacity as unknown as Consumed; // dynalite sets both
    units.set(TableName, (units.get(TableName) ?? 0) + 2 * CapacityUnits);
  }
  if (units.size === 0) return {};
  const ConsumedCapacity = [...units].map(
    ([TableName, CapacityUnits]): Consumed => ({ TableName, CapacityUnits }),
  );
  return { ConsumedCapacity };
}

/** DynamoDB charges an empty read like a read of up to 4 KB; dynalite does not charge it. */
export function withLeastCapacity(answer: Readonly<Record<string, unknown>>, input: Input) {
  const { ConsumedCapacity } = answer;
  if (!isRecord(ConsumedCapacity) || ConsumedCapacity["CapacityUnits"] !== 0) return answer;
  const CapacityUnits = input["ConsistentRead"] === true ? 1 : 0.5;
  return { ...answer, ConsumedCapacity: { ...ConsumedCapacity, CapacityUnits } };
}
