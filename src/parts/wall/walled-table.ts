/** Table whose partition keys start with the tenant. */
export interface WalledTable {
  /** Logical name. */
  readonly name: string;
  readonly partitionKey: string;
  readonly indexes: ReadonlyMap<string, string>;
  /**
   * Attributes that must start with the tenant if a row has them: all partition keys, the table's
   * own first.
   */
  readonly led: readonly string[];
}

/** Returns the name of a table given by name or ARN, also of another account or Region. */
export function tableOf(name: unknown): string | undefined {
  if (typeof name !== "string") return undefined;
  if (/^[A-Za-z0-9_.-]+$/.test(name)) return name;
  return /^arn:[^/]*:table\/([A-Za-z0-9_.-]+)$/.exec(name)?.[1];
}
