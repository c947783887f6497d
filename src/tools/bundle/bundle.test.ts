import { execFile } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { build as esbuild } from "esbuild";
import { esbuildPlugin, rolldownPlugin } from "keelson/bundle";
import { rolldown } from "rolldown";
import { build as vite } from "vite";
import { afterAll, describe, expect, test } from "vitest";
import { optionalPackages } from "./rolldown.ts";

const folder = mkdtempSync(join(tmpdir(), "keelson-bundle-"));
afterAll(() => rmSync(folder, { recursive: true }));

// biome-ignore-start lint/suspicious/noTemplateCurlyInString: they are sources
/**
 * An application, with what of keelson a cold start reads, under the names that it has there. What two lazy modules share is a
 * file of its own for bundlers.
 */
const sources = {
  "package.json": '{ "type": "module", "sideEffects": false }',
  "one.ts": `
import { createHash } from "node:crypto";
import { named } from "./errors.ts";
export const handler = async (step: string) => {
  if (step === "start") return named(createHash("sha256").update("a").digest("hex").slice(0, 4));
  const { answer } = await import("./src/hosts/lambda-http/http-events.ts");
  if (step === "first") return answer();
  const { write } = await import("./write.ts");
  if (step === "fail") return write(undefined as unknown as string);
  return write(step);
};
`,
  "two.ts": `
import { named } from "./errors.ts";
globalThis.startedTwo = true;
export const handler = async () => \`\${named("two")} \${(await (await import("./src/hosts/lambda-http/http-events.ts")).answer())}\`;
`,
  "waiting.ts": `
import { waited } from "./waits.ts";
export const handler = async () => waited.join(" ");
`,
  "waits.ts": `
import { named } from "./errors.ts";
export const waited = [named("waited")];
try {
  const { answer } = await import("./src/hosts/lambda-http/http-events.ts");
  waited.push(await answer());
} catch {}
`,
  "errors.ts": "export const named = (text: string) => `named ${text}`;\n",
  "shared.ts": `
import { named } from "./errors.ts";
import { sep } from "node:path/posix";
export const shared = (text: string) => named(\`shared\${sep}\${text}\`);
`,
  "src/hosts/lambda-http/http-events.ts": `
import { shared } from "../../../shared.ts";
export const answer = async () => \`\${shared("answer")} \${(await import("../../aws/clients/dynamodb-sdk.ts")).client()}\`;
`,
  "src/aws/clients/dynamodb-sdk.ts": 'export { client } from "./sdk.ts";\n',
  "src/aws/clients/sdk.ts": `
import { shared } from "../../../shared.ts";
import { legacy } from "./legacy.cjs";
export const client = () => \`\${shared("client")} \${legacy()}\`;
`,
  "src/aws/clients/legacy.cjs":
    'const { isIP } = require("net");\nexports.legacy = () => `legacy ${isIP("::1")}`;\n',
  "outside.ts": `
import { outside } from "outside";
import { required } from "./outside.cjs";
import { small } from "small";
export const handler = async () => \`\${outside} \${required} \${small} \${(await import("./src/aws/clients/dynamodb-sdk.ts")).client()}\`;
`,
  "outside.cjs": 'exports.required = require("outside").outside;\n',
  "node_modules/outside/index.js": 'exports.outside = "outside";\n',
  "node_modules/small/package.json":
    '{ "type": "module", "main": "main.js", "module": "module.js" }',
  "node_modules/small/module.js": 'export const small = "module";\n',
  "node_modules/small/main.js": 'export const small = "main";\n',
  "write.ts": `
import { shared } from "./shared.ts";
export const write = async (text: string) => {
  const { gunzip, gzip } = await import("node:zlib");
  const { default: http } = await import("http");
  const size = text.length; // of nothing it fails
  return \`\${shared(text)} \${size} \${typeof gzip} \${typeof gunzip} \${typeof http.request}\`;
};
`,
};
// biome-ignore-end lint/suspicious/noTemplateCurlyInString: they are sources
for (const [name, text] of Object.entries(sources)) {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), text);
}

interface Options {
  readonly sourcemap?: boolean | "inline";
  readonly minify?: false;
  readonly external?: string[];
  readonly banner?: { readonly js: string };
}

/** What esbuild needs where CommonJS asks for something that stays outside. */
const requires =
  'import { createRequire as make } from "node:module"; const require = make(import.meta.url);';

const bundlers = {
  rolldown: async (
    entries: readonly string[],
    outdir: string,
    { external = [], sourcemap = false, minify }: Options,
  ) => {
    const input = Object.fromEntries(entries.map((name) => [name, join(folder, `${name}.ts`)]));
    const bundle = await rolldown({
      input,
      external,
      plugins: [rolldownPlugin()],
      logLevel: "warn",
    });
    await bundle.write({ dir: outdir, sourcemap, ...(minify === false ? { minify } : {}) });
    await bundle.close();
  },
  esbuild: async (entries: readonly string[], outdir: string, options: Options) => {
    const entryPoints = entries.map((name) => join(folder, `${name}.ts`));
    await esbuild({
      entryPoints,
      outdir,
      plugins: [esbuildPlugin()],
      logLevel: "warning",
      ...options,
    });
  },
};

describe.each(["rolldown", "esbuild"] as const)("%s", (name) => {
  let count = 0;
  const bundle = async (entries: readonly string[], options: Options = {}) => {
    const outdir = join(folder, `${name}-${count++}`);
    await bundlers[name](entries, outdir, options);
    return outdir;
  };

  test("a bundled handler returns the same results as its source", async () => {
    const outdir = await bundle(["one"]);

    expect(await called(outdir, "one", "start")).toMatchObject({ result: "named ca97" });
    expect(await called(outdir, "one", "first")).toMatchObject({
      result: "named shared/answer named shared/client legacy 6",
    });
    expect(await called(outdir, "one", "text")).toMatchObject({
      result: "named shared/text 4 function function function",
    });
  });

  test("loads one file at the start, one more for the first request plus the SDK's, and others on demand", async () => {
    const outdir = await bundle(["one"]);

    expect((await called(outdir, "one", "start")).read).toEqual(["one"]);
    // The SDK can be asked for by name (`aws/clients/dynamodb.ts`); esbuild makes no other file of one module.
    // Rolldown has a file for its own helpers.
    const others = name === "rolldown" ? ["rolldown-runtime", "sdk"] : [];
    expect((await called(outdir, "one", "first")).read).toEqual([
      "dynamodb-sdk",
      "first",
      "one",
      ...others,
    ]);
    expect((await called(outdir, "one", "text")).read).toContain("write");
  });

  test("a function does not run the code of another function in the same bundle", async () => {
    const outdir = await bundle(["one", "two"]);

    expect(await called(outdir, "one", "first")).toMatchObject({
      result: "named shared/answer named shared/client legacy 6",
      startedTwo: false,
    });
    expect(await called(outdir, "two", "first")).toMatchObject({
      result: "named two named shared/answer named shared/client legacy 6",
      startedTwo: true,
    });
  });

  test.each([[["waiting"]], [["waiting", "one"]]])(
    "the bundle of %j starts although a module that it imports waits for lazy files",
    async (entries) => {
      const outdir = await bundle(entries);

      expect(await called(outdir, "waiting", "")).toMatchObject({
        result: "named waited named shared/answer named shared/client legacy 6",
      });
    },
  );

  test("imports no module of Node statically, which would initialise all of its members", async () => {
    const outdir = await bundle(["one"]);
    const text = scripts(outdir).map((file) => readFileSync(join(outdir, file), "utf8"));

    expect(text.join("\n")).not.toMatch(
      /(?:from|import) ?\(?["'`](?:node:)?(?:crypto|zlib|net|http|path)/,
    );
  });

  test.each([true, "inline"] as const)(
    "a stack trace names the source file and line with sourcemap: %s",
    async (sourcemap) => {
      const outdir = await bundle(["one"], { sourcemap });
      const line =
        sources["write.ts"].split("\n").findIndex((text) => text.includes("of nothing")) + 1;

      expect((await called(outdir, "one", "fail")).result).toMatch(
        new RegExp(`write\\.ts:${line}:`),
      );
    },
  );

  test("modules that the build marks as external stay external", async () => {
    const outdir = await bundle(["outside"], {
      external: ["outside"],
      ...(name === "esbuild" ? { banner: { js: requires } } : {}),
    });

    expect(await called(outdir, "outside", "")).toMatchObject({
      result: "outside outside module named shared/client legacy 6",
    });
  });

  test("the build's own options take precedence", async () => {
    const outdir = await bundle(["one"], { minify: false });

    expect(readFileSync(join(outdir, "one.mjs"), "utf8")).toMatch(/\n\s+return/);
  });
});

test("Vite builds the same files as Rolldown", async () => {
  const outDir = join(folder, "vite");
  await vite({
    configFile: false,
    root: folder,
    logLevel: "warn",
    plugins: [rolldownPlugin()],
    build: { ssr: "one.ts", outDir, sourcemap: true },
  });
  const line = sources["write.ts"].split("\n").findIndex((text) => text.includes("of nothing")) + 1;

  expect(await called(outDir, "one", "first")).toMatchObject({
    result: "named shared/answer named shared/client legacy 6",
    read: ["dynamodb-sdk", "first", "one", "rolldown-runtime", "sdk"],
  });
  expect((await called(outDir, "one", "fail")).result).toContain(`write.ts:${line}:`);
  expect(readFileSync(join(outDir, "one.mjs"), "utf8").trim().split("\n").length).toBeLessThan(5);
});

test("Vite's own options take precedence", async () => {
  const outDir = join(folder, "vite-told");
  await vite({
    configFile: false,
    root: folder,
    logLevel: "warn",
    plugins: [rolldownPlugin()],
    build: {
      ssr: "one.ts",
      outDir,
      minify: false,
      rolldownOptions: {
        output: {
          entryFileNames: "index.mjs",
          codeSplitting: { groups: [{ name: "own", test: /errors\.ts$/ }] },
        },
      },
    },
    ssr: { noExternal: ["other"] },
  });

  expect(readFileSync(join(outDir, "index.mjs"), "utf8")).toMatch(/\n\s+return/);
  expect(scripts(outDir).filter((file) => file.startsWith("own-"))).toHaveLength(1);
});

test("an array of Vite outputs keeps its configuration", async () => {
  const outDir = join(folder, "vite-several");
  await vite({
    configFile: false,
    root: folder,
    logLevel: "warn",
    plugins: [rolldownPlugin()],
    build: {
      ssr: "one.ts",
      outDir,
      rolldownOptions: { output: [{ entryFileNames: "[name].a.mjs" }] },
    },
  });

  expect(scripts(outDir)).toContain("one.a.mjs");
});

test("Rolldown's plugin refuses codeSplitting: false, since each start would read the whole bundle", async () => {
  const bundle = await rolldown({ input: join(folder, "one.ts"), plugins: [rolldownPlugin()] });

  await expect(bundle.generate({ codeSplitting: false })).rejects.toThrow("codeSplitting is false");
});

test("Rolldown's plugin refuses Rollup, which supports neither groups nor TypeScript", () => {
  // Safe: it is the plugin's own hook.
  const { options } = rolldownPlugin() as unknown as {
    options: (this: object, options: object) => object;
  };

  expect(() => options.call({ meta: { rollupVersion: "4.62.0" } }, {})).toThrow("not Rollup");
});

test("an application of one module is bundled into one file", async () => {
  for (const [name, build] of Object.entries(bundlers)) {
    const outdir = join(folder, `${name}-alone`);
    await build(["errors"], outdir, {});

    expect(scripts(outdir)).toEqual(["errors.mjs"]);
  }
});

test("esbuild returns its output files and metafile with write: false", async () => {
  writeFileSync(join(folder, "text.txt"), "text");
  writeFileSync(
    join(folder, "asset.ts"),
    'import path from "./text.txt";\nexport const handler = async () => path;\n',
  );
  const { metafile, outputFiles } = await esbuild({
    absWorkingDir: folder,
    entryPoints: ["one.ts", "asset.ts"],
    outdir: "given",
    metafile: true,
    write: false,
    loader: { ".txt": "file" },
    plugins: [esbuildPlugin()],
  });
  const one = metafile.outputs["given/one.mjs"];

  expect(outputFiles.map(({ path }) => path)).toContain(join(folder, "given/one.mjs"));
  expect(outputFiles.filter(({ path }) => path.endsWith(".txt"))).toHaveLength(1);
  expect(existsSync(join(folder, "given"))).toBe(false);
  expect(one?.entryPoint).toBe("one.ts");
  expect(Object.keys(one?.inputs ?? {})).toContain("one.ts");
});

test("esbuild keeps custom file names and folders, and exports that look like generated ones", async () => {
  const outdir = join(folder, "named");
  writeFileSync(
    join(folder, "dollar.ts"),
    'export const $0 = 0;\nexport { handler } from "./one.ts";\n',
  );
  await esbuild({
    absWorkingDir: folder,
    entryPoints: { "functions/one": "dollar.ts" },
    outdir,
    outExtension: { ".js": ".js" },
    chunkNames: "chunks/[name]-[hash]",
    minify: false,
    plugins: [esbuildPlugin()],
  });
  writeFileSync(join(outdir, "package.json"), '{ "type": "module" }');
  // Safe: it is what it exports.
  const { handler, $0 } = (await import(pathToFileURL(join(outdir, "functions/one.js")).href)) as {
    handler: (step: string) => Promise<string>;
    $0: number;
  };

  expect($0).toBe(0);
  expect(await handler("abc")).toBe("named shared/abc 3 function function function");
});

test("esbuild's own errors are passed on", async () => {
  const entryPoints = [join(folder, "nothing.ts")];

  await expect(
    esbuild({ entryPoints, outdir: folder, plugins: [esbuildPlugin()], logLevel: "silent" }),
  ).rejects.toThrow("nothing.ts");
});

const script = `
const { handler } = await import(process.argv[2]);
const result = await handler(process.argv[3]).catch((error) => error.stack);
console.log(JSON.stringify({ result, startedTwo: globalThis.startedTwo === true }));
`;

/** What the handler of a bundle returns in a process of its own, and the names of the files that it has read. */
async function called(outdir: string, entry: string, step: string) {
  const hooks = `import { registerHooks } from "node:module";
registerHooks({ load: (url, context, next) => { if (url.endsWith(".mjs")) console.error(url); return next(url, context); } });`;
  const data = (text: string) => `data:text/javascript,${encodeURIComponent(text)}`;
  writeFileSync(join(folder, "call.mts"), script);
  const entryUrl = pathToFileURL(join(outdir, `${entry}.mjs`)).href;
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [
    ...["--enable-source-maps", "--import", data(hooks), join(folder, "call.mts"), entryUrl, step],
  ]);
  const read = [...stderr.matchAll(/([^/]+)\.mjs$/gm)]
    .map(([, file = ""]) => file.replace(/-[\w-]{8}$/, ""))
    .sort();
  // Safe: it is what the script prints.
  return { ...(JSON.parse(stdout) as { result: string; startedTwo: boolean }), read };
}

function scripts(outdir: string): readonly string[] {
  return existsSync(outdir) ? readdirSync(outdir).filter((file) => file.endsWith(".mjs")) : [];
}

test("a bundle can lack each optional peer dependency that runtime code may import", () => {
  const { peerDependenciesMeta } = JSON.parse(
    readFileSync(join(import.meta.dirname, "../../../package.json"), "utf8"),
  );
  const isType = (name: string) => name.startsWith("@types/");

  expect(optionalPackages).toEqual(
    Object.keys(peerDependenciesMeta).filter((name) => !isType(name)),
  );
});

test("a missing optional package stays external, and an installed one is bundled", async () => {
  const entry = join(folder, "optional.ts");
  writeFileSync(entry, 'export const load = () => import("prom-client").catch(() => undefined);\n');
  const built = async () => {
    const bundle = await rolldown({ input: entry, plugins: [rolldownPlugin()], logLevel: "warn" });
    const { output } = await bundle.generate();
    await bundle.close();
    return output.map((file) => (file.type === "chunk" ? file.code : "")).join("\n");
  };
  expect(await built()).toContain('import("prom-client")'.replaceAll('"', "`"));
  mkdirSync(join(folder, "node_modules/prom-client"), { recursive: true });
  writeFileSync(join(folder, "node_modules/prom-client/index.js"), 'exports.here = "here";\n');
  expect(await built()).toContain("here");
});
