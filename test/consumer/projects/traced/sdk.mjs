// OpenTelemetry's own SDK, without any instrumentation: what it exports, and where to, is in the environment.
import { NodeSDK } from "@opentelemetry/sdk-node";

new NodeSDK().start();
