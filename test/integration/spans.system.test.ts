// A trace over two processes, as a collector gets it.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { buildServer } from "../../src/index.ts";
import { startTestApp } from "../../src/tools/testing/index.ts";
import { receiveHooks } from "../fixtures/traced-hosts.ts";
import { signalGroup, startProcess } from "../support/process.ts";

/** A span as OTLP has it in JSON. */
interface Exported {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly links?: readonly { readonly spanId: string }[];
}

/** Takes spans by OTLP over HTTP, in JSON. */
async function startCollector() {
  const spans: Exported[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer); // without an encoding there is nothing else
    const { resourceSpans } = JSON.parse(Buffer.concat(chunks).toString()) as {
      readonly resourceSpans: readonly {
        readonly scopeSpans: readonly { readonly spans: readonly Exported[] }[];
      }[];
    };
    spans.push(
      ...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)),
    );
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo; // safe: it listens on a port
  return { spans, url: `http://127.0.0.1:${port}/v1/traces` };
}

test("one trace leads from the request to the webhook, even if the first consumer's process crashes", async () => {
  const [collector, receiver] = [await startCollector(), await receiveHooks()];
  onTestFinished(() => receiver.close());
  const app = await startTestApp(buildServer({ features: [] })); // the stack of both processes
  onTestFinished(() => app.close());
  const start = async (more: Readonly<Record<string, string>>) => {
    const fixture = join(import.meta.dirname, "../fixtures/traced-process.ts");
    const env = {
      ...app.env,
      PORT: "0",
      NODE_ENV: "development",
      LOG_FORMAT: "json",
      OTLP_URL: collector.url,
      ...more,
    };
    const started = await startProcess(process.execPath, [fixture], env);
    onTestFinished(async () => {
      signalGroup(started, "SIGKILL");
      await started.exited;
    });
    return started;
  };
  const dying = await start({ STANDS: "1" });
  const answer = await fetch(`http://127.0.0.1:${dying.port}/files`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ url: receiver.url }),
  });
  const { traceId } = (await answer.json()) as { readonly traceId: string };
  await expect.poll(() => dying.logs.map(({ msg }) => msg)).toContain("exported.stands");
  await expect.poll(() => collector.spans.map(({ name }) => name)).toContain("POST /files");
  signalGroup(dying, "SIGKILL");
  expect(await dying.exited).toMatchObject({ signal: "SIGKILL" });
  await start({});
  // The message comes again once its visibility timeout is over, and the claim of the one that died its lease.
  await expect.poll(() => collector.spans.map(({ name }) => name)).toContain("process webhook");

  const own = collector.spans.filter((span) => span.traceId === traceId);
  // The last: where the claim of the one that died still has its lease, the message is handed back.
  const one = (name: string) => own.findLast((span) => span.name === name);
  const chain = [
    ...[
      "POST /files",
      "publish exported-file.created",
      "process exported-file.created",
      "deliver webhook",
      "process webhook",
      "POST",
    ],
  ].map(one);
  expect(chain.slice(1).map((span) => span?.parentSpanId)).toEqual(
    chain.slice(0, -1).map((span) => span?.spanId),
  );
  expect(chain[2]?.links?.map(({ spanId }) => spanId)).toEqual([chain[1]?.spanId]);
  expect(receiver.hooks.map(({ headers }) => headers["traceparent"])).toEqual([
    `00-${traceId}-${chain[5]?.spanId}-01`,
  ]);
});
