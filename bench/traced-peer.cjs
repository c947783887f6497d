// A function's module as OpenTelemetry's instrumentation expects it: `handler` is wrapped when it is required. What it calls is the
// peer of `wrapped.ts`, which `observed.ts` puts here.
exports.handler = (event, context) => exports.inner(event, context);
