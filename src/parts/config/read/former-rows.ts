import type { ConfigKeyRegistry } from "../declare/key.ts";
import { type ConfigRow, type ConfigRowReader, formerPlace, type RowAddress } from "./rows.ts";

/**
 * Also finds rows of renamed keys under their former names. A row is superseded if its `renamedTo`
 * names the key that replaced it:
 *
 * | under the key      | under a former key      | result                           |
 * |--------------------|-------------------------|----------------------------------|
 * | a row              | any                     | the row, even deleted or expired |
 * | none or superseded | a row                   | the first former row             |
 * | none or superseded | superseded rows or none | no value: replacement deleted    |
 */
export function withFormerRows(
  reader: ConfigRowReader,
  registry: ConfigKeyRegistry,
): ConfigRowReader {
  return {
    read: async (addresses, options) => {
      const found = await readPlaces(reader, registry, addresses, options);
      const doubtful = addresses.filter((_address, index) => found[index]?.isDoubtful);
      if (doubtful.length === 0) return found.map(({ row }) => row);
      const again = (await readPlaces(reader, registry, doubtful, { consistent: true })).values();
      return found.map(({ row, isDoubtful }) => (isDoubtful ? again.next().value?.row : row));
    },
  };
}

interface Found {
  readonly row: ConfigRow | undefined;
  /**
   * Only superseded rows were found. A batch read is not a snapshot, so it may miss a row
   * written during the read. A second, consistent read keeps the key from falling back to its default.
   */
  readonly isDoubtful: boolean;
}

async function readPlaces(
  reader: ConfigRowReader,
  { configKeys }: ConfigKeyRegistry,
  addresses: readonly RowAddress[],
  options: Parameters<ConfigRowReader["read"]>[1],
): Promise<readonly Found[]> {
  const places = addresses.map(({ partition, key }) => {
    const formerly = configKeys.get(key)?.definition.formerly ?? [];
    return { formerly, addresses: [key, ...formerly].map((name) => ({ partition, key: name })) };
  });
  const everyAddress = places.flatMap((place) => place.addresses);
  const left = [...(await reader.read(everyAddress, options))];
  return places.map(({ formerly, addresses: { length } }) => {
    const [own, ...former] = left.splice(0, length);
    return rowThatCounts(formerly, own, former);
  });
}

function rowThatCounts(
  formerly: readonly string[],
  own: ConfigRow | undefined,
  former: readonly (ConfigRow | undefined)[],
): Found {
  // A key that was renamed and renamed back may have a superseded row under its current name.
  const isSuperseded = own?.renamedTo !== undefined && formerly.includes(own.renamedTo);
  if (own !== undefined && !isSuperseded) return { row: own, isDoubtful: false };
  const rows = formerly.flatMap((key, index) => {
    const row = former[index];
    return row === undefined || row.renamedTo !== undefined ? [] : [{ key, row }];
  });
  const [first] = rows;
  if (first !== undefined) {
    const place = { key: first.key, own, rows };
    return { row: { ...first.row, [formerPlace]: place }, isDoubtful: false };
  }
  return {
    row: own && { ...own, value: undefined, deleted: true },
    isDoubtful: isSuperseded || former.some((row) => row !== undefined),
  };
}
