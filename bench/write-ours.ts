// Bundled by `cold.ts`: a write, which happens once.
import * as z from "zod/mini";
import { lambdaHandler } from "../src/hosts/lambda/index.ts";
import { access, buildServer, defineFeature } from "../src/index.ts";

const files = defineFeature("files", (r) => {
  r.write("file.rename", {
    route: "PUT /files/:id",
    access: access.everyone,
    input: z.object({ id: z.string(), name: z.string() }),
    handler: async (_ctx, { id, name }) => ({ id, name }),
  });
});

/** The Lambda function. */
export const handler = lambdaHandler(
  buildServer({ features: [files], log: { requests: false } }),
  "files.file.rename",
);
