/** Table whose partition keys start with the tenant. */
export interface WalledTable {
  readonly name: string;
  readonly partitionKey: string;
  readonly indexes: ReadonlyMap<string, string>;
  /** Partition keys of table and indexes, which must start with the tenant if a row has them. */
  readonly led: readonly string[];
}

/** Returns the name from a table's name or ARN, which may be of another account or Region. */
export function tableOf(name: unknown): string | undefined {
  if (typeof name !== "string") return undefined;
  if (/^[A-Za-z0-9_.-]+$/.test(name)) return name;
  return /^arn:[^/]*:table\/([A-Za-z0-9_.-]+)$/.exec(name)?.[1];
}
