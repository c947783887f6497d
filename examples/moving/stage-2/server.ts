import { buildServer, createTenantConfig, defineFeature } from "keelson";
import { auth } from "../stage-1/server.ts";

export const orders = defineFeature("orders", (r) => {
  const config = r.config({
    keys: {
      maxQuantity: createTenantConfig("number", { default: 50, bounds: { min: 1, max: 1_000 } }),
    },
  });
  return { config };
});

export const server = buildServer({ features: [orders], auth });
