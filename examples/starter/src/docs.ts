import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { access, defineFeature, reply } from "keelson";

// Prevents requests to other hosts. Scalar adds its own styles.
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self' blob:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const configuration = {
  url: "/openapi.json",
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: "never",
  agent: { disabled: true },
  mcp: { disabled: true },
};

const page = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>API reference</title></head>
<body>
<script id="api-reference" type="application/json" data-configuration='${JSON.stringify(configuration)}'></script>
<script src="/docs/scalar.js"></script>
</body>
</html>
`;

const reference = defineFeature("docs", (r) => {
  r.query("page.show", {
    route: "GET /docs",
    access: access.everyone,
    handler: () =>
      reply(page, {
        headers: { "content-type": "text/html; charset=utf-8", "content-security-policy": policy },
      }),
  });
  r.query("script.show", {
    route: "GET /docs/scalar.js",
    access: access.everyone,
    handler: async () => {
      const { resolve } = createRequire(import.meta.url);
      const script = join(resolve("@scalar/fastify-api-reference"), "../js/standalone.js");
      return reply(await readFile(script, "utf8"), {
        headers: { "content-type": "text/javascript; charset=utf-8", "cache-control": "no-cache" },
      });
    },
  });
});

/** The reference of the API at `/docs`. Only in development, because its script is a dev dependency. */
export const docs = process.env["NODE_ENV"] === "development" ? [reference] : [];
