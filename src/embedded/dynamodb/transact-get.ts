import type { Dynalite, Item } from "../service/dynalite.ts";
import { missingMember } from "../service/operation.ts";
import type { Input } from "../service/service.ts";
import type { ReadWriteLock } from "./read-write-lock.ts";
import { asStructure, refuseLargeTransaction, runAll, transactItems } from "./transaction-items.ts";

export async function transactGet(
  dynalite: Dynalite,
  lock: ReadWriteLock,
  input: Input,
): Promise<object> {
  const gets = transactItems(input).map(({ item, path }) => {
    const get = asStructure(item["Get"], `${path}.get`);
    const { TableName, Key, ProjectionExpression, ExpressionAttributeNames } = get;
    if (TableName === undefined) throw missingMember(`${path}.get.tableName`);
    const expression = { ProjectionExpression, ExpressionAttributeNames };
    const prepared = dynalite.prepare("GetItem", { TableName, Key, ...expression });
    const checked = prepared as { TableName: string; Key: Item }; // prepare checked name and key
    return { prepared, table: checked.TableName, of: { key: checked.Key } };
  });
  return lock.read(async () => {
    const run = ({ prepared }: { readonly prepared: object }): Promise<{ Item?: Item }> =>
      dynalite.run("GetItem", prepared);
    const Responses = await runAll(dynalite, gets, run);
    refuseLargeTransaction(Responses.map(({ Item = {} }) => dynalite.sizeOf(Item)));
    return { Responses };
  });
}
