import { isSealed } from "../../base/secrets/sealed.ts";
import type { CommitItem } from "../../base/types/database.ts";
import type { ConfigKeyRegistry } from "../../parts/config/declare/key.ts";
import type { ConfigStore, RowWrite } from "../../parts/config/operate/operator-session.ts";
import { withFormerRows } from "../../parts/config/read/former-rows.ts";
import { type ConfigRow, type ConfigRowReader, formerPlace } from "../../parts/config/read/rows.ts";

export type FormerRows = ReturnType<typeof dynamoFormerRows>;

/** Rows of renamed keys. Loaded only if a key has a former name. */
export function dynamoFormerRows(tableName: string, registry: ConfigKeyRegistry) {
  return {
    reader: (reader: ConfigRowReader): ConfigRowReader => withFormerRows(reader, registry),
    /**
     * Merges the versions under all names. Under a former name, a process from before the rename may
     * have written versions above that of the row. The key never had these versions.
     */
    history:
      (history: ConfigStore["history"], rows: ConfigRowReader): ConfigStore["history"] =>
      async (address, { before, limit }) => {
        const names = registry.configKeys.get(address.key)?.definition.formerly ?? [];
        if (names.length === 0) return history(address, { before, limit });
        const [row] = await withFormerRows(rows, registry).read([address]);
        const end = (row?.version ?? Number.MAX_SAFE_INTEGER) + 1;
        const former = { before: Math.min(before ?? end, end), limit };
        const found = await Promise.all([
          history(address, { before, limit }),
          ...names.map((key) => history({ ...address, key }, former)),
        ]);
        // Of entries with the same version, the one under the latest name counts.
        const latestLast = found.flat().reverse();
        const entries = new Map(latestLast.map((entry) => [entry.version, entry]));
        return [...entries.values()]
          .sort((one, other) => other.version - one.version)
          .slice(0, limit);
      },
    /** Items that a write adds so that readers ignore the rows under former keys afterwards. */
    itemsOf: ({ address, seen }: RowWrite): readonly CommitItem[] => {
      const place = seen?.[formerPlace];
      if (seen !== undefined && place === undefined) return [];
      const definition = registry.configKeys.get(address.key)?.definition;
      return (definition?.formerly ?? []).map((key): CommitItem => {
        const former = { TableName: tableName, Key: { pk: address.partition, sk: key } };
        const found = place?.rows.find((one) => one.key === key);
        return found === undefined
          ? nothing(former)
          : superseded(former, address.key, found.row, definition?.encrypted === true);
      });
    },
  };
}

type FormerItem = { readonly TableName: string; readonly Key: Readonly<Record<string, string>> };

function nothing(former: FormerItem): CommitItem {
  return {
    ConditionCheck: {
      ...former,
      ConditionExpression: "attribute_not_exists(pk) OR attribute_exists(#to)",
      ExpressionAttributeNames: { "#to": "renamedTo" },
    },
  };
}

/**
 * The value stays for processes that know only the former key, unless it is a secret, which may be
 * revoked.
 */
function superseded(
  former: FormerItem,
  key: string,
  { version, value }: ConfigRow,
  encrypted: boolean,
): CommitItem {
  const isSecret = encrypted || isSealed(value);
  const seen = version === undefined ? "attribute_not_exists(version)" : "version = :seen";
  return {
    Update: {
      ...former,
      UpdateExpression: isSecret ? "SET #to = :to, #deleted = :yes REMOVE #value" : "SET #to = :to",
      ConditionExpression: `attribute_exists(pk) AND attribute_not_exists(#to) AND ${seen}`,
      ExpressionAttributeNames: {
        "#to": "renamedTo",
        ...(isSecret ? { "#deleted": "deleted", "#value": "value" } : {}),
      },
      ExpressionAttributeValues: {
        ":to": key,
        ...(isSecret ? { ":yes": true } : {}),
        ...(version === undefined ? {} : { ":seen": version }),
      },
    },
  };
}
