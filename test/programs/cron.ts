import { buildServer, defineFeature } from "keelson";

const reports = defineFeature("reports", (r) => {
  r.schedule("report.nightly", {
    cron: "0 3 * * *",
    timeZone: "Europe/Berlin",
    handler: (ctx, { at }) => ctx.log.info("report.written", { at: at.toISOString() }),
  });
});
export const server = buildServer({ features: [reports] });
