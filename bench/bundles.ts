import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { rolldown } from "rolldown";
import { rolldownPlugin } from "../src/tools/bundle/index.ts";
import { writeFloor } from "./floor.ts";
import { median, type Result, result, rounded } from "./measure.ts";

const rounds = 25;

/** How long a bundled handler takes to import, and from the start of its process to its first value from DynamoDB. */
export async function bundleResults(env: Readonly<Record<string, string>>): Promise<Result[]> {
  const folder = mkdtempSync(join(tmpdir(), "keelson-bench-"));
  try {
    await bundleOurs(join(folder, "ours"));
    await bundlePeer(join(folder, "peer"));
    writeFloor(join(folder, "floor"));
    const file = (name: string, text: string) => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    const importing = (name: string) => `import "./${name}/app.mjs";\n`;
    const empty = file("empty.mjs", "");
    const imports = {
      ours: file("import-ours.mjs", importing("ours")),
      peer: file("import-peer.mjs", importing("peer")),
    };
    const answers = {
      ours: file("value-ours.mjs", invoking("ours")),
      peer: file("value-peer.mjs", invoking("peer")),
      floor: file("value-floor.mjs", invoking("floor")),
    };
    const started = await timed([empty, imports.ours, imports.peer], {});
    const [nothing = 0, ours = 0, peer = 0] = started.map(median);
    const values = await timed([answers.ours, answers.peer, answers.floor], env);
    const [oursFirst = 0, peerFirst = 0, floor = 0] = values.map(median);
    return [
      milliseconds("bundle-import", ours - nothing, peer - nothing),
      {
        ...milliseconds("first-value", oursFirst, peerFirst),
        floor: rounded(floor, 1),
      },
    ];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Bundles our handler as `app.mjs`, as `npm run package` does. */
export async function bundleOurs(outdir: string, app = ours): Promise<void> {
  const build = await rolldown({ input: { app }, plugins: [rolldownPlugin()], logLevel: "warn" });
  await build.write({ dir: outdir });
  await build.close();
}

const ours = bundleFile("ours");

/** The path of a handler of this folder. */
export function bundleFile(name: string): string {
  return new URL(/^(write|front)-/.test(name) ? `${name}.ts` : `bundle-${name}.ts`, import.meta.url)
    .pathname;
}

/**
 * Bundles our handler as an application does that has installed the package, as `app.mjs` in two folders: by the build scripts
 * of `docs/bundle.md`, run in a folder of their own.
 */
export async function bundleAsUser(
  folder: string,
  outdirs: { readonly rolldown: string; readonly esbuild: string },
): Promise<void> {
  const root = new URL("..", import.meta.url).pathname;
  execFileSync(process.execPath, [join(root, "scripts/build.mjs")], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  mkdirSync(join(folder, "node_modules"), { recursive: true });
  symlinkSync(root, join(folder, "node_modules/keelson"));
  for (const name of ["zod", "rolldown", "esbuild"])
    symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name));
  const source = readFileSync(ours, "utf8")
    .replace("../src/index.ts", "keelson")
    .replace("../src/hosts/lambda/index.ts", "keelson/lambda");
  writeFileSync(join(folder, "app.ts"), source);
  writeFileSync(
    join(folder, "rolldown.mjs"),
    `import { rolldownPlugin } from "keelson/bundle";
import { rolldown } from "rolldown";
const build = await rolldown({ input: "app.ts", plugins: [rolldownPlugin()] });
await build.write({ dir: process.argv[2] });
`,
  );
  writeFileSync(
    join(folder, "esbuild.mjs"),
    `import { build } from "esbuild";
import { esbuildPlugin } from "keelson/bundle";
await build({ entryPoints: ["app.ts"], outdir: process.argv[2], plugins: [esbuildPlugin()] });
`,
  );
  for (const [name, outdir] of Object.entries(outdirs)) {
    execFileSync(process.execPath, [`${name}.mjs`, outdir], {
      cwd: folder,
      stdio: ["ignore", "ignore", "inherit"],
    });
  }
}

/** Bundles the peer's as `app.mjs`, by esbuild's default for Node: the packages' CommonJS, which asks for a `require`. */
export async function bundlePeer(outdir: string, app = bundleFile("peer")): Promise<void> {
  await build({
    entryPoints: { app },
    outdir,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    splitting: true,
    minify: true,
    format: "esm",
    platform: "node",
    target: "node22",
    logLevel: "error",
    banner: {
      js: 'import { createRequire as make } from "node:module"; const require = make(import.meta.url);',
    },
  });
}

function milliseconds(id: string, ours: number, peer: number): Result {
  return result({ id, ours: rounded(ours, 1), peer: rounded(peer, 1), unit: "ms" });
}

/** Calls the handler once, checks the value, and ends at once: closing sockets is nobody's waiting. */
function invoking(name: string): string {
  return `import { handler } from "./${name}/app.mjs";
const path = "/limits/f1";
const event = {
  version: "2.0", rawPath: path, rawQueryString: "", headers: { "x-request-id": "r1" }, pathParameters: { id: "f1" },
  requestContext: { http: { method: "GET", path, sourceIp: "192.0.2.1" }, stage: "$default" }, isBase64Encoded: false,
};
const { body } = await handler(event, { awsRequestId: "a1", functionName: "files", getRemainingTimeInMillis: () => 30_000 });
if (body !== '{"id":"f1","maxMb":77}') throw new Error(body);
process.exit();
`;
}

/** The milliseconds of each file's process, in turns. */
async function timed(
  files: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<number[][]> {
  const taken = files.map(() => [] as number[]);
  for (let round = -2; round < rounds; round++) {
    for (const [index, file] of files.entries()) {
      const ms = await duration(file, env);
      if (round >= 0) taken[index]?.push(ms);
    }
  }
  return taken;
}

async function duration(file: string, env: Readonly<Record<string, string>>): Promise<number> {
  const began = performance.now();
  const child = spawn(process.execPath, [file], {
    env: { ...process.env, ...env, NODE_ENV: "production" },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error(`${file} exited with ${code}`);
  return performance.now() - began;
}
