import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { MustWaitError } from "../../parts/limits/must-wait.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import { openWebhooks } from "./webhook-channel.ts";

async function listen(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`; // safe: it listens on TCP
}

test("a target that accepts webhooks and stays silent gets four at a time, and delays no other target", async () => {
  let accepted = 0;
  const silent = createServer(() => {
    accepted += 1;
  });
  const target = createServer((_request, response) => response.end());
  const [silentUrl, url] = await Promise.all([listen(silent), listen(target)]);
  const { send } = openWebhooks({ allowHttp: true, allowPrivate: true, timeoutMs: 60_000 });
  const lines: unknown[] = [];
  // Safe cast: only these members are read.
  const ctx = {
    user: { tenantId: "acme" },
    requestId: "r1",
    trace: { headers: () => ({ traceparent: `00-${"1".repeat(32)}-${"2".repeat(16)}-01` }) },
    log: { info: (...line: unknown[]) => void lines.push(line) },
  } as unknown as PipelineContext;
  const post = async (id: number, to: string) =>
    send(ctx, { url: to, body: {} }, { id: `message-${id}` } as Parameters<typeof send>[2]); // safe: as above

  const held = Promise.allSettled([1, 2, 3, 4].map((id) => post(id, silentUrl)));
  await expect.poll(() => accepted).toBe(4);
  await expect(post(5, silentUrl)).rejects.toThrow(new MustWaitError("webhook target"));
  await Promise.all([6, 7, 8, 9].map((id) => post(id, url)));
  expect(lines).toEqual(Array.from({ length: 4 }, () => ["webhook.sent", { status: 200 }]));

  silent.closeAllConnections();
  expect((await held).map(({ status }) => status)).toEqual(Array(4).fill("rejected"));
  expect(accepted).toBe(4);
});
