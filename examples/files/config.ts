import {
  access,
  createSystemConfig,
  createTenantConfig,
  createUserConfig,
  type FeatureBuilder,
} from "keelson";
import type { CurrentPlan } from "./billing.ts";

/** Every configurable variable of the feature, declared once, each at the level of the person who changes it. */
export function declareConfig(r: FeatureBuilder, currentPlan: CurrentPlan) {
  return r.config({
    keys: {
      maxUploadSizeMb: createTenantConfig("number", {
        default: 10,
        bounds: { min: 1, max: 10_000 },
        access: { read: access.admin, write: access.systemAdmin },
      }),
      signedUrlExpirySeconds: createTenantConfig("number", {
        default: 900,
        bounds: { min: 60, max: 604_800 },
        allowPerRequest: true,
      }),
      // The value depends on the plan, so it is computed; a stored row takes precedence.
      storageQuotaMb: createTenantConfig("number", {
        computed: async (ctx) => ((await ctx.query(currentPlan, {})).plan === "pro" ? 5_000 : 100),
      }),
      // The same for the rate limit of download URLs.
      urlsPerMinute: createTenantConfig("number", {
        computed: async (ctx) => ((await ctx.query(currentPlan, {})).plan === "pro" ? 600 : 60),
        access: { read: access.admin, write: access.systemAdmin },
      }),
      listOrder: createUserConfig("select", {
        options: ["newest", "name"],
        default: "newest",
        allowPerRequest: true,
      }),
      maintenanceMode: createSystemConfig("boolean", { default: false }),
      webhookSecret: createTenantConfig("text", {
        encrypted: true,
        access: { read: access.admin, write: access.admin },
      }),
    },
  });
}
