// The oldest SDK, with the oldest API, and its own exporter.

import { SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { NodeTracerProvider } from "@opentelemetry/sdk-trace-node";

const nothing = "0000000000000000";
const exported = (span) => ({
  ...span.spanContext(),
  parentSpanId: span.parentSpanId ?? nothing,
  name: span.name,
  kind: span.kind + 1,
  attributes: Object.entries(span.attributes).map(([key, value]) => ({ key, value: { value } })),
  events: span.events,
  links: span.links.map(({ context }) => context),
  status: span.status,
});
const exporter = {
  export: (spans, done) => {
    const scopeSpans = spans.map((span) => ({
      scope: span.instrumentationLibrary,
      spans: [exported(span)],
    }));
    const body = JSON.stringify({ resourceSpans: [{ scopeSpans }] });
    fetch(process.env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, { method: "POST", body }).then(() =>
      done({ code: 0 }),
    );
  },
  shutdown: async () => {},
};
const provider = new NodeTracerProvider();
provider.addSpanProcessor(new SimpleSpanProcessor(exporter));
provider.register();
