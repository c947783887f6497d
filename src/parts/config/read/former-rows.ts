import type { ConfigKeyRegistry } from "../declare/key.ts";
import { type ConfigRow, type ConfigRowReader, formerPlace, type RowAddress } from "./rows.ts";

/**
 * Reads rows of keys that were renamed at their former places as well:
 *
 * | under the key       | under a former key                  | what counts                                       |
 * |---------------------|-------------------------------------|---------------------------------------------------|
 * | a row               | any                                 | the row, be it a tombstone or expired             |
 * | none, or superseded | a row                               | the first former row                              |
 * | none, or superseded | superseded rows only, or none       | nothing: what took their place was deleted        |
 *
 * A superseded row names the key that has taken its place in `renamedTo`.
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
   * A row was superseded, and what took its place is not there. A batch is no snapshot: that one may have been read before it was
   * written, and the other after. A default must not come from that, so it is asked for once more.
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
  const rows = await reader.read(
    places.flatMap((place) => place.addresses),
    options,
  );
  let taken = 0;
  return places.map(({ formerly, addresses: { length } }) => {
    const [own, ...former] = rows.slice(taken, taken + length);
    taken += length;
    return rowThatCounts(formerly, own, former);
  });
}

function rowThatCounts(
  formerly: readonly string[],
  own: ConfigRow | undefined,
  former: readonly (ConfigRow | undefined)[],
): Found {
  // A key that got a former name back finds its own row superseded.
  const isSuperseded = own?.renamedTo !== undefined && formerly.includes(own.renamedTo);
  if (own !== undefined && !isSuperseded) return { row: own, isDoubtful: false };
  const rows = formerly.flatMap((key, index) => {
    const row = former[index];
    return row === undefined || row.renamedTo !== undefined ? [] : [{ key, row }];
  });
  const [first] = rows;
  if (first !== undefined) {
    return {
      row: { ...first.row, [formerPlace]: { key: first.key, own, rows } },
      isDoubtful: false,
    };
  }
  return {
    row: own && { ...own, value: undefined, deleted: true },
    isDoubtful: isSuperseded || former.some((row) => row !== undefined),
  };
}
