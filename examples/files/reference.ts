import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { access, defineFeature, reply } from "keelson";

/** Prevents requests to other origins. Scalar adds its own styles. */
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

/** Features of Scalar that would call its servers. */
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

/** The reference of the API at `/docs`, for development: the page of Scalar, whose bundle is a dev dependency. */
export const reference = defineFeature("reference", (r) => {
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
      const text = await readFile(bundle(), "utf8");
      return reply(text, {
        headers: { "content-type": "text/javascript; charset=utf-8", "cache-control": "no-cache" },
      });
    },
  });
});

function bundle(): string {
  const { resolve } = createRequire(import.meta.url);
  return join(resolve("@scalar/fastify-api-reference"), "../js/standalone.js");
}
