import type { DynamoDBClient, DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";

/** Options of {@link ClaimLayer}, with the names of Powertools' `DynamoDBPersistenceLayer`. */
export interface ClaimLayerOptions {
  readonly tableName: string;
  /** The table's partition key. Default `id`. */
  readonly keyAttr?: string;
  /** The table's sort key, if it has one; the partition key is then `staticPkValue`. */
  readonly sortKeyAttr?: string;
  /** Default `idempotency#<name of the Lambda function>`. */
  readonly staticPkValue?: string;
  /** Default: a client of its own, created at first use. */
  readonly awsSdkV3Client?: DynamoDBClient;
  /** The configuration of the layer's own client. */
  readonly clientConfig?: DynamoDBClientConfig;
  /** How long a concurrent duplicate waits for the first call, in milliseconds. Default 10,000; 0 refuses it at once. */
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

/** @throws TypeError for options that there are not; Error in production where `POWERTOOLS_IDEMPOTENCY_DISABLED` is set. */
export function assertClaimLayerOptions(options: ClaimLayerOptions): void {
  const unknown = Object.keys(options).filter((name) => !known.includes(name));
  if (unknown.length > 0)
    throw new TypeError(
      `ClaimLayer: there is no option ${unknown.join(", ")}; it has ${known.join(", ")}`,
    );
  const { tableName, keyAttr = "id", sortKeyAttr, waitMs = 0, awsSdkV3Client } = options;
  if (typeof tableName !== "string" || tableName === "")
    throw new TypeError("ClaimLayer: tableName is missing");
  if (keyAttr === sortKeyAttr)
    throw new TypeError(`ClaimLayer: keyAttr and sortKeyAttr are both ${keyAttr}`);
  if (!(waitMs >= 0)) throw new TypeError("ClaimLayer: waitMs is not a number of milliseconds");
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
