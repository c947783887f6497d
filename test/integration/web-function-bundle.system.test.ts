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
/** The container of a new application, and its functions. */
const input = {
  lambda: join(root, "examples/starter/src/lambda.ts"),
  web: join(root, "examples/starter/src/main.ts"),
};

const bundlers = {
  rolldown: async (dir: string) => {
    const build = await rolldown({
      input,
      tsconfig,
      plugins: [rolldownPlugin()],
      logLevel: "warn",
    });
    await build.write({ dir });
    await build.close();
  },
  esbuild: async (outdir: string) => {
    await esbuild({
      entryPoints: input,
      outdir,
      tsconfig,
      plugins: [esbuildPlugin()],
      logLevel: "warning",
    });
  },
};

// No account answers: a Web Function needs none to start, nor any permission that its role lacks.
test.each(["rolldown", "esbuild"] as const)(
  "the index.js of %s serves as a Web Function without a call to AWS at the start",
  async (name) => {
    const dir = join(folder, name);
    await bundlers[name](dir);
    const web = await startWebFunction([join(dir, "index.js")], {
      NODE_ENV: "production",
      KEELSON_AUTH_SECRET: "a-secret-of-at-least-thirty-two-bytes",
      AWS_ENDPOINT_URL: "https://aws.nowhere.invalid",
    });

    const ready = await fetch(`http://127.0.0.1:${web.port}/health/ready`);
    expect([ready.status, await ready.json()]).toMatchObject([200, { status: "ready" }]);
    expect((await fetch(`http://127.0.0.1:${web.port}/notes/1`)).status).toBe(401);
    expect(web.logs).toContainEqual(expect.objectContaining({ msg: "server.started" }));
    expect(await web.stop()).toMatchObject({ code: 0 });
  },
);
