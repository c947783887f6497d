// The same with instrumentations, which see the modules that are required.
const { NodeSDK } = require("@opentelemetry/sdk-node");
const { AwsInstrumentation } = require("@opentelemetry/instrumentation-aws-sdk");
const { HttpInstrumentation } = require("@opentelemetry/instrumentation-http");
const { UndiciInstrumentation } = require("@opentelemetry/instrumentation-undici");

new NodeSDK({
  instrumentations: [
    new HttpInstrumentation(),
    new UndiciInstrumentation(),
    new AwsInstrumentation({ suppressInternalInstrumentation: true }),
  ],
}).start();
