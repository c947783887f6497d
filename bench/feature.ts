import { access, buildServer, createTenantConfig, defineFeature } from "../src/index.ts";

/** What is measured: a query with one configuration read, silent or with one line. */
export const files = defineFeature("files", (r) => {
  const config = r.config({
    keys: {
      maxUploadSizeMb: createTenantConfig("number", {
        default: 10,
        bounds: { min: 1, max: 10_000 },
      }),
    },
  });
  r.query("limits.silent", {
    route: "GET /limits/silent",
    access: access.everyone,
    handler: async (ctx) => ({ maxMb: await ctx.config(config.maxUploadSizeMb) }),
  });
  r.query("limits.logged", {
    route: "GET /limits/logged",
    access: access.everyone,
    handler: async (ctx) => {
      const maxMb = await ctx.config(config.maxUploadSizeMb);
      ctx.log.info("limits.read", { maxMb, plan: "pro" });
      return { maxMb };
    },
  });
  return { config };
});

const options = { features: [files], cache: { ttlMs: 3_600_000 } } as const;
const silent = { ...options, log: { requests: false } } as const;

/** Every host of this folder serves it. Rows are kept for an hour, as the peers keep theirs, which write no line of their own. */
export const server = buildServer(silent);

/** The same with a line for each request, as it is by default. */
export const telling = buildServer(options);

/** The same with the trace that a request names, and without. */
export const joining = buildServer({ ...silent, trace: { incoming: "trust" } });
export const ignoring = buildServer({ ...silent, trace: { incoming: "ignore" } });

/** The same with each request measured. */
export const measuring = buildServer({ ...silent, metrics: { access: access.everyone } });
