import type { DynamoDBClient, DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";

/** Options of {@link ClaimLayer}, with the names from Powertools' `DynamoDBPersistenceLayer`. */
export interface ClaimLayerOptions {
  /** Name of the DynamoDB table that stores the claims. */
  readonly tableName: string;
  /** Partition key of the table. Default `id`. */
  readonly keyAttr?: string;
  /** Sort key of the table, if it has one; the partition key is then `staticPkValue`. */
  readonly sortKeyAttr?: string;
  /**
   * Value of the partition key in a table with a sort key. Default
   * `idempotency#<name of the Lambda function>`.
   */
  readonly staticPkValue?: string;
  /** Client for the table. Default: the layer's own client, created at first use. */
  readonly awsSdkV3Client?: DynamoDBClient;
  /** Configuration of the layer's own client. */
  readonly clientConfig?: DynamoDBClientConfig;
  /**
   * Time for which a concurrent duplicate waits for the first call, in milliseconds. Default
   * 10,000; with 0, the duplicate is refused immediately.
   */
  readonly waitMs?: number;
}

const known = [
  "tableName",
  "keyAttr",
  "sortKeyAttr",
  "staticPkValue",
  "awsSdkV3Client",
  "clientConfig",
  "waitMs",
];

export function assertClaimLayerOptions(options: ClaimLayerOptions): void {
  const unknown = Object.keys(options).filter((name) => !known.includes(name));
  if (unknown.length > 0)
    throw new TypeError(
      `ClaimLayer: there is no option ${unknown.join(", ")}; it has ${known.join(", ")}`,
    );
  const { tableName, keyAttr = "id", sortKeyAttr, waitMs = 0, awsSdkV3Client } = options;
  for (const name of ["keyAttr", "sortKeyAttr", "staticPkValue"] as const) {
    const given: unknown = options[name];
    if (given !== undefined && (typeof given !== "string" || given === ""))
      throw new TypeError(`ClaimLayer: ${name} is not a name; omit it for its default`);
  }
  if (typeof tableName !== "string" || tableName === "")
    throw new TypeError("ClaimLayer: tableName is missing");
  if (keyAttr === sortKeyAttr)
    throw new TypeError(`ClaimLayer: keyAttr and sortKeyAttr are both ${keyAttr}`);
  if (typeof waitMs !== "number" || !(waitMs >= 0))
    throw new TypeError("ClaimLayer: waitMs is not a number of milliseconds");
  if (awsSdkV3Client !== undefined && typeof awsSdkV3Client.send !== "function")
    throw new TypeError("ClaimLayer: awsSdkV3Client is not a DynamoDBClient of the AWS SDK");
  const isProduction =
    process.env["NODE_ENV"] !== "development" && process.env["NODE_ENV"] !== "test";
  if (isProduction && process.env["POWERTOOLS_IDEMPOTENCY_DISABLED"]) {
    throw new Error(
      "POWERTOOLS_IDEMPOTENCY_DISABLED is set: calls would be done again; unset it in production",
    );
  }
}
