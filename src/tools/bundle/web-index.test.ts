import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { build as esbuild } from "esbuild";
import { esbuildPlugin, rolldownPlugin } from "keelson/bundle";
import { rolldown } from "rolldown";
import { build as vite } from "vite";
import { afterAll, describe, expect, test } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "keelson-web-index-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Two entries of one application: the module of event functions, and one that starts a container. */
const sources = {
  "package.json": '{ "type": "module" }',
  "server.ts": 'export const server = (text: string) => text + " of the server";\n',
  "lambda.ts":
    'import { server } from "./server.ts";\nexport const queue = async () => server("queue");\n',
  "web.ts":
    'import { server } from "./server.ts";\nimport { once } from "node:events";\nawait Promise.resolve();\nconsole.log(server("started"), typeof once);\n',
  "index.ts": 'export const own = "index";\n',
};
for (const [name, text] of Object.entries(sources)) writeFileSync(join(folder, name), text);

type Entries = Readonly<Record<string, string>>;

const bundlers = {
  rolldown: async (entries: Entries, outdir: string) => {
    const input = Object.fromEntries(
      Object.entries(entries).map(([name, file]) => [name, join(folder, file)]),
    );
    const bundle = await rolldown({ input, plugins: [rolldownPlugin()], logLevel: "warn" });
    const js = "index" in entries ? { entryFileNames: "[name].js" } : {};
    await bundle.write({ dir: outdir, ...js });
    await bundle.close();
  },
  esbuild: async (entryPoints: Entries, outdir: string) => {
    const js = "index" in entryPoints ? { outExtension: { ".js": ".js" } } : {};
    await esbuild({
      absWorkingDir: folder,
      entryPoints: { ...entryPoints },
      outdir,
      plugins: [esbuildPlugin()],
      logLevel: "warning",
      ...js,
    });
  },
};

/** What a process of the file prints. */
async function ran(file: string, ...args: readonly string[]) {
  const { stdout } = await promisify(execFile)(process.execPath, [...args, file]);
  return stdout.trim();
}

describe.each(["rolldown", "esbuild"] as const)("%s", (name) => {
  const bundled = async (entries: Entries) => {
    const outdir = mkdtempSync(join(folder, `${name}-`));
    await bundlers[name](entries, outdir);
    return outdir;
  };

  test("writes the index.js of a Web Function, which starts the entry web, with or without a package.json", async () => {
    const outdir = await bundled({ lambda: "lambda.ts", web: "web.ts" });
    const index = join(outdir, "index.js");

    expect(readFileSync(index, "utf8")).toBe('import("./web.mjs");\n');
    expect(await ran(index)).toBe("started of the server function");
    for (const type of ["commonjs", "module"]) {
      writeFileSync(join(outdir, "package.json"), JSON.stringify({ type }));
      expect(await ran(index)).toBe("started of the server function");
    }
  });

  test("the module of event functions starts no container", async () => {
    const outdir = await bundled({ lambda: "lambda.ts", web: "web.ts" });
    const script = join(outdir, "call.mjs");
    writeFileSync(
      script,
      'const { queue } = await import("./lambda.mjs");\nconsole.log(await queue());\n',
    );

    expect(await ran(script)).toBe("queue of the server");
  });

  test("writes no index.js without an entry web in the folder itself", async () => {
    const outdir = await bundled({
      lambda: "lambda.ts",
      "deeper/web": "web.ts",
      website: "web.ts",
    });

    expect(existsSync(join(outdir, "index.js"))).toBe(false);
  });

  test("keeps an index.js that the build makes itself", async () => {
    const outdir = await bundled({ index: "index.ts", web: "web.ts" });

    expect(readFileSync(join(outdir, "index.js"), "utf8")).toContain("own");
  });
});

test("esbuild lists index.js beside the other files with write: false", async () => {
  const { metafile, outputFiles } = await esbuild({
    absWorkingDir: folder,
    entryPoints: ["web.ts"],
    outdir: "given",
    metafile: true,
    write: false,
    plugins: [esbuildPlugin()],
  });

  expect(outputFiles.find(({ path }) => path === join(folder, "given/index.js"))?.text).toBe(
    'import("./web.mjs");\n',
  );
  expect(metafile.outputs["given/index.js"]).toMatchObject({ bytes: 21, imports: [] });
});

test("esbuild writes index.js relative to the process without absWorkingDir", async () => {
  const outdir = join(folder, "absolute");
  await esbuild({ entryPoints: [join(folder, "web.ts")], outdir, plugins: [esbuildPlugin()] });

  expect(existsSync(join(outdir, "index.js"))).toBe(true);
});

test("Vite writes the index.js of a Web Function too", async () => {
  const outDir = join(folder, "vite");
  mkdirSync(outDir);
  await vite({
    configFile: false,
    root: folder,
    logLevel: "warn",
    plugins: [rolldownPlugin()],
    build: { ssr: "web.ts", outDir },
  });

  expect(await ran(join(outDir, "index.js"))).toBe("started of the server function");
});
