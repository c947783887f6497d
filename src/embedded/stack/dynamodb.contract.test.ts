import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { describeDynamoDbContract } from "../../../test/embedded/dynamodb-contract.ts";
import { openDynamoDb } from "../dynamodb/dynamodb.ts";
import { createFrontServer } from "./front-server.ts";
import { startEmbeddedStack } from "./index.ts";

const capabilities = {
  validationReasons: true,
  countsStoredItems: true,
  refusesRepeatedTimeToLive: true,
};

describeDynamoDbContract(
  "The embedded stack, in memory",
  async () => {
    const stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
    return connectionTo(stack.endpoint, () => stack.close());
  },
  capabilities,
);

describeDynamoDbContract(
  "The embedded stack's parts, in this process and on disk,",
  async () => {
    const directory = mkdtempSync(join(tmpdir(), "keelson-contract-"));
    const db = await openDynamoDb({ path: directory });
    const server = createFrontServer([db], (fault) => console.error(fault)).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo; // it listens on TCP, so its address is one
    return connectionTo(`http://127.0.0.1:${port}`, async () => {
      server.close();
      await db.close();
      rmSync(directory, { recursive: true, maxRetries: 20 });
    });
  },
  capabilities,
);

function connectionTo(endpoint: string, close: () => Promise<void>) {
  const credentials = { accessKeyId: "embedded", secretAccessKey: "embedded" };
  const client = new DynamoDBClient({ endpoint, region: "us-east-1", credentials });
  return {
    client,
    documents: DynamoDBDocumentClient.from(client),
    async close() {
      client.destroy();
      await close();
    },
  };
}
