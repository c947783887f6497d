import { buildServer, type Feature } from "keelson";
import { createBillingFeature } from "./billing.ts";
import { createFilesFeature } from "./files.ts";
import { chargeNobody } from "./payments.ts";

// The level "feature option": the application's developer sets these values here, at build time.
const billing = createBillingFeature({ charge: chargeNobody });
export const files = createFilesFeature({ accept: ["*"], currentPlan: billing.currentPlan });

// The path of a deployment's parameters in SSM: the app-boot overrides, and the key ring next to them.
const { FILES_PARAMETERS: parameters } = process.env;

/** The server, including the parts that only development uses. */
export const createServer = (...more: readonly Feature[]) =>
  buildServer({
    features: [files, billing, ...more],
    // People sign in with tokens; scripts and scanners of a tenant call with its API keys.
    auth: { apiKeys: true },
    // Operators suspend tenants who do not pay, and each tenant gets its reminders by its own clock.
    tenants: true,
    openapi: { title: "Files", version: "1.0.0" },
    // Webhooks are signed with the secret that the tenant has set.
    delivery: { webhook: { secret: files.config.webhookSecret } },
    ...(parameters
      ? { ssm: { path: `${parameters}/config` }, keyRing: { parameter: `${parameters}/key-ring` } }
      : {}),
  });

export const server = createServer();
