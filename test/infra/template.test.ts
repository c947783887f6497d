// own process: it loads modules anew
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { server as sample } from "../../examples/files/server.ts";
import { serverInternals } from "../../src/app/server/server.ts";
import { combined, extensionOf } from "../../src/tools/infra/extension.ts";
import {
  type ServerTemplateOptions,
  serverTemplate,
} from "../../src/tools/infra/server-template.ts";
import { templateText } from "../../src/tools/infra/template.ts";
import { root } from "./dockerfile.ts";

let server: typeof sample;
beforeAll(async () => {
  // Its roles name the stage's parameters; another file of tests may have loaded the sample without.
  vi.stubEnv("FILES_PARAMETERS", "/keelson-files/dev");
  vi.resetModules();
  ({ server } = await import("../../examples/files/server.ts"));
});
afterAll(() => void vi.unstubAllEnvs());

const read = (file: string) => readFileSync(join(root, "infra", file), "utf8");
const own = ["own.json", "own-one.json"].map((file) => extensionOf(JSON.parse(read(file))));

// A failure is mended by `npx keelson infra examples/files/server.ts`, with `--part data`, and with FILES_PARAMETERS,
// `--with infra/own.json --with infra/own-one.json`.
test.each<[string, Partial<ServerTemplateOptions>]>([
  ["data", { part: "data" }],
  ["all", { part: "all", extension: combined(own) }],
])("the sample's template of %s matches its server's output byte for byte", (name, options) => {
  const made = serverTemplate(serverInternals(server), { stage: "dev", ...options });

  expect(read(`generated/${name}-dev.json`)).toBe(templateText(made));
});
