import type { Dynalite, Item } from "../service/dynalite.ts";
import { invalidMember } from "../service/operation.ts";
import type { Input } from "../service/service.ts";
import type { ReadWriteLock } from "./read-write-lock.ts";
import {
  asStructure,
  type CancellationReason,
  refuseLargeTransaction,
  refuseSharedItems,
  transactItems,
  transactionCancelled,
  validationReason,
} from "./transaction-items.ts";

/** The read lock keeps writes out between the reads. */
export async function transactGet(
  dynalite: Dynalite,
  lock: ReadWriteLock,
  input: Input,
): Promise<object> {
  const gets = transactItems(input).map((item, index) => {
    const path = `transactItems.${index + 1}.member.get`;
    const get = asStructure(item["Get"], path);
    const { TableName, Key, ProjectionExpression, ExpressionAttributeNames } = get;
    if (TableName === undefined) throw invalidMember(null, `${path}.tableName`, "not be null");
    const expression = { ProjectionExpression, ExpressionAttributeNames };
    const prepared = dynalite.prepare("GetItem", { TableName, Key, ...expression });
    const checked = prepared as { TableName: string; Key: Item }; // checked by prepare
    return { prepared, table: checked.TableName, of: { key: checked.Key } };
  });
  return lock.read(async () => {
    await refuseSharedItems(dynalite, gets);
    const responses: { Item?: Item }[] = [];
    const reasons: CancellationReason[] = [];
    for (const { prepared } of gets) {
      const run = dynalite.run("GetItem", prepared);
      reasons.push(
        await run.then((found) => {
          responses.push(found);
          return { Code: "None" as const };
        }, validationReason),
      );
    }
    if (reasons.some(({ Code }) => Code !== "None")) throw transactionCancelled(reasons);
    refuseLargeTransaction(
      responses.reduce((sum, { Item = {} }) => sum + dynalite.sizeOf(Item), 0),
    );
    return { Responses: responses };
  });
}
