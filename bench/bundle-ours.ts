// Bundled by `bundles.ts`: a handler with a schema and one key, as an application writes it.
import * as z from "zod/mini";
import { lambdaHandler } from "../src/hosts/lambda/index.ts";
import { access, buildServer, createTenantConfig, defineFeature } from "../src/index.ts";

const files = defineFeature("files", (r) => {
  const config = r.config({
    keys: {
      maxUploadSizeMb: createTenantConfig("number", {
        default: 10,
        bounds: { min: 1, max: 10_000 },
      }),
    },
  });
  r.query("file.limit", {
    route: "GET /limits/:id",
    access: access.everyone,
    input: z.object({ id: z.string() }),
    handler: async (ctx, { id }) => ({ id, maxMb: await ctx.config(config.maxUploadSizeMb) }),
  });
});

/** The Lambda function. */
export const handler = lambdaHandler(
  buildServer({ features: [files], log: { requests: false } }),
  "files.file.limit",
);
