import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EventBridgeClient } from "@aws-sdk/client-eventbridge";
import { SQSClient } from "@aws-sdk/client-sqs";
import { describeEventBridgeContract } from "../../../test/embedded/event-bridge-contract.ts";
import { openEventBridge } from "../bus/event-bridge.ts";
import { openSqs } from "../queues/sqs.ts";
import { createFrontServer } from "./front-server.ts";
import { startEmbeddedStack } from "./index.ts";

const capabilities = { checksInput: true, disablesRules: true, resolvesGroups: true };

describeEventBridgeContract(
  "The embedded stack, in memory",
  async () => {
    const stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
    return connectionTo(stack.endpoint, () => stack.close());
  },
  capabilities,
);

describeEventBridgeContract(
  "The embedded stack's parts, in this process and on disk,",
  async () => {
    const directory = mkdtempSync(join(tmpdir(), "keelson-event-bridge-contract-"));
    const sqs = openSqs({ path: join(directory, "queues.jsonl") });
    const eventBridge = openEventBridge({ sqs, path: join(directory, "event-bridge.jsonl") });
    const server = createFrontServer([sqs, eventBridge], (fault) => console.error(fault)).listen(
      0,
      "127.0.0.1",
    );
    await once(server, "listening");
    const { port } = server.address() as AddressInfo; // it listens on TCP, so its address is one
    return connectionTo(`http://127.0.0.1:${port}`, async () => {
      server.close();
      sqs.close();
      eventBridge.close();
      rmSync(directory, { recursive: true, maxRetries: 20 });
    });
  },
  capabilities,
);

function connectionTo(endpoint: string, close: () => Promise<void>) {
  const options = {
    endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "embedded", secretAccessKey: "embedded" },
  };
  const client = new EventBridgeClient(options);
  const sqs = new SQSClient(options);
  return {
    client,
    sqs,
    async close() {
      client.destroy();
      sqs.destroy();
      await close();
    },
  };
}
