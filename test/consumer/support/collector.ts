import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** A span as OTLP has it in JSON. */
export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  /** 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  readonly kind: number;
  readonly attributes: readonly {
    readonly key: string;
    readonly value: Readonly<Record<string, unknown>>;
  }[];
  readonly events?: readonly { readonly name: string }[];
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status: { readonly code?: number };
  /** Which library made it. */
  readonly scope: string;
}

type Batch = {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly {
      readonly scope: { readonly name: string };
      readonly spans: readonly CollectedSpan[];
    }[];
  }[];
};

/** Serves on a free port of this machine until the test has ended. */
export async function serve(
  answer: (path: string, text: string, headers: NodeJS.Dict<string | string[]>) => unknown,
) {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer); // without an encoding there is nothing else
    const body = await answer(request.url ?? "", Buffer.concat(chunks).toString(), request.headers);
    response
      .writeHead(200, { "content-type": "application/json", connection: "close" })
      .end(JSON.stringify(body ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo; // safe: it listens on a port
  return `127.0.0.1:${port}`;
}

/** Takes spans by OTLP over HTTP, in JSON. */
export async function startCollector() {
  const spans: CollectedSpan[] = [];
  const host = await serve((path, text) => {
    if (path !== "/v1/traces") return;
    for (const { scopeSpans } of (JSON.parse(text) as Batch).resourceSpans) {
      for (const { scope, spans: made } of scopeSpans)
        spans.push(...made.map((span) => ({ ...span, scope: scope.name })));
    }
  });
  const endpoint = `http://${host}`;
  /** Variables that make an SDK send its data there. */
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${endpoint}/v1/traces`,
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/json",
    OTEL_TRACES_EXPORTER: "otlp",
    OTEL_METRICS_EXPORTER: "none",
    OTEL_LOGS_EXPORTER: "none",
    OTEL_NODE_RESOURCE_DETECTORS: "none",
    OTEL_BSP_SCHEDULE_DELAY: "100",
  };
  return { spans, env };
}
