import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SSMClient } from "@aws-sdk/client-ssm";
import { describeSsmContract } from "../../../test/embedded/ssm-contract.ts";
import { openSsm } from "../parameters/ssm.ts";
import { createFrontServer } from "./front-server.ts";
import { startEmbeddedStack } from "./index.ts";

const capabilities = { seals: true, keepsTypes: true, checksInput: true };

describeSsmContract(
  "The embedded stack, in memory",
  async () => {
    const stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
    return connectionTo(stack.endpoint, () => stack.close());
  },
  capabilities,
);

describeSsmContract(
  "The embedded stack's parts, in this process and on disk,",
  async () => {
    const directory = mkdtempSync(join(tmpdir(), "keelson-ssm-contract-"));
    const server = createFrontServer([openSsm({ directory })], (fault) =>
      console.error(fault),
    ).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo; // it listens on TCP, so its address is one
    return connectionTo(`http://127.0.0.1:${port}`, async () => {
      server.close();
      rmSync(directory, { recursive: true, maxRetries: 20 });
    });
  },
  capabilities,
);

function connectionTo(endpoint: string, close: () => Promise<void>) {
  const client = new SSMClient({
    endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "embedded", secretAccessKey: "embedded" },
  });
  return {
    client,
    async close() {
      client.destroy();
      await close();
    },
  };
}
