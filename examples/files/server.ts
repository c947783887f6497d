import { buildServer, type Feature } from "keelson";
import { createBillingFeature } from "./billing.ts";
import { createFilesFeature } from "./files.ts";
import { chargeNobody } from "./payments.ts";

// The level "feature option": what the application's developer decides here, at build time.
const billing = createBillingFeature({ charge: chargeNobody });
export const files = createFilesFeature({ accept: ["*"], currentPlan: billing.currentPlan });

// Where a deployment keeps its parameters in SSM: the overrides of the level "app boot", and the key ring beside them.
const { FILES_PARAMETERS: parameters } = process.env;

/** The server, and what is in it for development alone. */
export const createServer = (...more: readonly Feature[]) =>
  buildServer({
    features: [files, billing, ...more],
    openapi: { title: "Files", version: "1.0.0" },
    // Webhooks are signed with the secret that the tenant has set.
    delivery: { webhook: { secret: files.config.webhookSecret } },
    ...(parameters
      ? { ssm: { path: `${parameters}/config` }, keyRing: { parameter: `${parameters}/key-ring` } }
      : {}),
  });

export const server = createServer();
