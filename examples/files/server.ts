import { buildServer } from "keelson";
import { createBillingFeature } from "./billing.ts";
import { createFilesFeature } from "./files.ts";
import { chargeNobody } from "./payments.ts";

// The level "feature option": what the application's developer decides here, at build time.
export const files = createFilesFeature({ accept: ["*"] });
const billing = createBillingFeature({ charge: chargeNobody });

// Where a deployment keeps its parameters in SSM: the overrides of the level "app boot", and the key ring beside them.
const { FILES_PARAMETERS: parameters } = process.env;

export const server = buildServer({
  features: [files, billing],
  // Webhooks are signed with the secret that the tenant has set.
  delivery: { webhook: { secret: files.config.webhookSecret } },
  ...(parameters ? { ssm: { path: `${parameters}/config` }, keyRing: { parameter: `${parameters}/key-ring` } } : {}),
});
