import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { server } from "../../examples/files/server.ts";
import { dataTemplate } from "../../src/infra/server-template.ts";
import { templateText } from "../../src/infra/template.ts";
import { serverInternals } from "../../src/server/server.ts";
import { root } from "./dockerfile.ts";

// A failure here is mended by `npx keelson infra examples/files/server.ts --part data`.
test("the sample's template of its data is what its server gives, byte by byte", () => {
  const committed = readFileSync(join(root, "infra/generated/data-dev.json"), "utf8");

  expect(committed).toBe(templateText(dataTemplate(serverInternals(server), { stage: "dev" })));
});
