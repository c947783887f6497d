import { buildServer } from "keelson";
import { billing } from "./billing.ts";
import { createFilesFeature } from "./files.ts";

// The level "feature option": what the application's developer decides here, at build time.
export const files = createFilesFeature({ accept: ["*"] });

export const server = buildServer({
  features: [files, billing],
  // Webhooks are signed with the secret that the tenant has set.
  delivery: { webhook: { secret: files.config.webhookSecret } },
});
