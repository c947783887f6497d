// OpenTelemetry's own SDK, without instrumentation. The environment sets the exporters and their target.
import { NodeSDK } from "@opentelemetry/sdk-node";

new NodeSDK().start();
