import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQSClient } from "@aws-sdk/client-sqs";
import { describeSqsContract } from "../../../test/embedded/sqs-contract.ts";
import { openSqs } from "../queues/sqs.ts";
import { createFrontServer } from "./front-server.ts";
import { startEmbeddedStack } from "./index.ts";

const capabilities = {
  checksInput: true,
  tracksDeadLetters: true,
  tracksReceipts: true,
  answersBatchesPartly: true,
  repeatsSequenceNumbers: true,
  isFair: true,
};

describeSqsContract(
  "The embedded stack, in memory",
  async () => {
    const stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
    return connectionTo(stack.endpoint, () => stack.close());
  },
  capabilities,
);

describeSqsContract(
  "The embedded stack's parts, in this process and on disk,",
  async () => {
    const directory = mkdtempSync(join(tmpdir(), "keelson-sqs-contract-"));
    const sqs = openSqs({ path: join(directory, "queues.jsonl") });
    const server = createFrontServer([sqs], (fault) => console.error(fault)).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo; // it listens on TCP, so its address is one
    return connectionTo(`http://127.0.0.1:${port}`, async () => {
      server.close();
      sqs.close();
      rmSync(directory, { recursive: true, maxRetries: 20 });
    });
  },
  capabilities,
);

function connectionTo(endpoint: string, close: () => Promise<void>) {
  const client = new SQSClient({
    endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "embedded", secretAccessKey: "embedded" },
  });
  let passedMs = 0;
  client.middlewareStack.add(
    (next) => (parameters) => {
      const request = parameters.request as { readonly headers: Record<string, string> }; // safe: a request of HTTP, at this step
      request.headers["x-keelson-clock-offset"] = String(passedMs);
      return next(parameters);
    },
    { step: "build" },
  );
  return {
    client,
    async pass(ms: number) {
      passedMs += ms;
    },
    async close() {
      client.destroy();
      await close();
    },
  };
}
