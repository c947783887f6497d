/** Options of a client for the LocalStack under test. */
export interface LocalStackConnection {
  readonly endpoint: string;
  readonly region: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
}

/**
 * Returns the address of the LocalStack under test.
 *
 * @throws Error without one, because these suites fail instead of being skipped.
 */
export function localStack(): LocalStackConnection {
  const endpoint = process.env["LOCALSTACK_ENDPOINT"];
  if (!endpoint)
    throw new Error(
      "LOCALSTACK_ENDPOINT is not set; run these suites with npm run test:localstack",
    );
  return {
    endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  };
}
