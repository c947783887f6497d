import type { Readable } from "node:stream";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";

/** Endpoint, region and credentials of an AWS service, if they differ from the environment's. */
export interface ClientOptions {
  readonly endpoint?: string | undefined;
  readonly region?: string | undefined;
  readonly credentials?:
    | { readonly accessKeyId: string; readonly secretAccessKey: string }
    | undefined;
  /** Receives a DynamoDB client before its first call. */
  readonly measure?: ((client: Pick<DynamoDBClient, "middlewareStack">) => void) | undefined;
}

/**
 * Collects a response body. The SDK's collector costs 1.4 ms of a cold start, because it loads the
 * classes of web streams and blobs to check for them, and then pipes into a second stream.
 */
function collectBytes(stream: Readable): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => resolve(Buffer.concat(chunks)));
    stream.on("error", reject);
  });
}

/** Returns the options of an SDK client. The SDK determines absent options itself. */
export function clientOptions({ endpoint, region, credentials }: ClientOptions) {
  return {
    // Safe: the SDK's handler for Node returns a Node stream.
    streamCollector: (stream: unknown) => collectBytes(stream as Readable),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(region === undefined ? {} : { region }),
    ...(credentials === undefined ? {} : { credentials }),
  };
}
