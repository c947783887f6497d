import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build as esbuild } from "esbuild";
import { esbuildPlugin, rolldownPlugin } from "keelson/bundle";
import { rolldown } from "rolldown";
import { afterAll, expect, test } from "vitest";
import { startWebFunction } from "../support/web-function.ts";

const root = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "keelson-web-bundle-"));
afterAll(() => rmSync(folder, { recursive: true }));

const tsconfig = join(root, "tsconfig.json");
/** The container of a new application, which waits for `runContainer` at its top level. */
const web = join(root, "examples/starter/src/main.ts");
const inputs = {
  "a web entry": { web },
  "a web entry beside functions": { web, lambda: join(root, "examples/starter/src/lambda.ts") },
};
type Input = Record<string, string>;

const bundlers = {
  rolldown: async (input: Input, dir: string) => {
    const build = await rolldown({
      input,
      tsconfig,
      plugins: [rolldownPlugin()],
      logLevel: "warn",
    });
    await build.write({ dir });
    await build.close();
  },
  esbuild: async (input: Input, outdir: string) => {
    await esbuild({
      entryPoints: input,
      outdir,
      tsconfig,
      plugins: [esbuildPlugin()],
      logLevel: "warning",
    });
  },
};

const cases = Object.entries(inputs).flatMap(([of, input]) =>
  (["rolldown", "esbuild"] as const).map((name) => ({ name, of, input })),
);

// No account answers: a Web Function needs none to start, nor any permission that its role lacks.
test.each(cases)(
  "the index.js of $name for $of serves as a Web Function without a call to AWS at the start",
  async ({ name, of, input }) => {
    const dir = join(folder, `${name} ${of}`);
    await bundlers[name](input, dir);
    const started = await startWebFunction([join(dir, "index.js")], {
      NODE_ENV: "production",
      KEELSON_AUTH_SECRET: "a-secret-of-at-least-thirty-two-bytes",
      AWS_ENDPOINT_URL: "https://aws.nowhere.invalid",
    });

    const ready = await fetch(`http://127.0.0.1:${started.port}/health/ready`);
    expect([ready.status, await ready.json()]).toMatchObject([200, { status: "ready" }]);
    expect((await fetch(`http://127.0.0.1:${started.port}/notes/1`)).status).toBe(401);
    expect(started.logs).toContainEqual(expect.objectContaining({ msg: "server.started" }));
    expect(await started.stop()).toMatchObject({ code: 0 });
  },
);
