/** What a client needs to reach the LocalStack under test. */
export interface LocalStackConnection {
  readonly endpoint: string;
  readonly region: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
}

/**
 * Says where the LocalStack under test is.
 *
 * @throws Error where nothing says so: without one these suites fail, they are never skipped.
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
