// Keeps a version: its bundle, its rows and its messages. `npm run release` runs it for each version, with the packed
// package. A published one can be kept later:
//   npm install --prefix /tmp/released keelson@<version> dynalite@4 && node test/compatibility/record.ts /tmp/released/node_modules/keelson
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { PutParameterCommand, SSMClient } from "@aws-sdk/client-ssm";
import type * as Container from "keelson/container";
import type * as Embedded from "keelson/embedded";
import type * as Testing from "keelson/testing";
import { rolldown } from "rolldown";
import { directoryLines, type KeptDirectory, readCut } from "./directory.ts";
import { keptServer, keyRings } from "./features.ts";
import { lines } from "./lines.ts";
import { packed } from "./packed.ts";
import { beginSession, type Left, usual } from "./session.ts";
import { keptFile, keptVersion, type Version } from "./version.ts";
import { createWorld } from "./world.ts";

const folder = resolve(process.argv[2] ?? "");
const { name, version, exports } = JSON.parse(
  readFileSync(join(folder, "package.json"), "utf8"),
) as {
  readonly name: string;
  readonly version: string;
  readonly exports: Readonly<Record<string, { readonly default: string }>>;
};
if (name !== "keelson")
  throw new Error(`usage: node test/compatibility/record.ts <folder of an installed keelson>`);
Object.assign(process.env, { NODE_ENV: "test", LOG_LEVEL: "CRITICAL" });

mkdirSync(keptFile(version, ""), { recursive: true });
await bundle();
// The bundle leaves; the package itself has the stack, and makes its tables.
const kept = await keptVersion(version);
const [keelson, testing, embedded, container] = await Promise.all([
  load<Version["keelson"]>("."),
  load<typeof Testing>("./testing"),
  load<typeof Embedded>("./embedded"),
  load<typeof Container>("./container"),
]);
const server = () => keptServer({ ...kept, keelson }, createWorld(), usual);
writeFileSync(keptFile(version, "stored.json"), packed(await recordLines()));
writeFileSync(keptFile(version, "directory.json"), packed(await recordDirectory()));
process.exit(0); // what is in progress stays so

/** All entry points that versions meet by as one file; other packages stay outside. */
async function bundle(): Promise<void> {
  const parts = {
    keelson: ".",
    lambda: "./lambda",
    middy: "./middy",
    claimLayer: "./claim-layer",
    operators: "./operators",
  };
  const entry = Object.entries(parts).map(
    ([part, path]) => `export * as ${part} from ${JSON.stringify(fileOf(path))};`,
  );
  const built = await rolldown({
    input: "kept",
    platform: "node",
    external: (id) => id !== "kept" && !/^[./]/.test(id),
    plugins: [
      {
        name: "kept",
        resolveId: (id) => (id === "kept" ? id : null),
        load: (id) => (id === "kept" ? entry.join("\n") : null),
      },
    ],
  });
  const file = keptFile(version, "keelson.js");
  await built.write({ file, minify: true, codeSplitting: false });
  const header = `// keelson ${version}, bundled by test/compatibility/record.ts from the package as it is published. Generated: do not edit.`;
  writeFileSync(file, `${header}\n${readFileSync(file, "utf8")}`);
  await built.close();
}

/** Contents of tables and queues after each line. */
async function recordLines(): Promise<readonly (Left & { readonly name: string })[]> {
  const app = await testing.startTestApp(server(), { secureParameters: ringParameters() });
  await app.settled(); // makes the queues
  const session = beginSession(app.env);
  const recorded: (Left & { readonly name: string })[] = [];
  for (const line of lines) {
    recorded.push({
      name: line.name,
      ...(await session.record(line, session.party(kept, line.name, "kept"))),
    });
  }
  session.close();
  await app.close();
  return recorded;
}

/** A data directory as its process left it when it was killed in the middle of its last writes. */
async function recordDirectory(): Promise<KeptDirectory> {
  const directory = mkdtempSync(join(tmpdir(), "keelson-record-"));
  const stack = await embedded.startEmbeddedStack({ directory, env: process.env });
  const secret = embedded.developmentSecret(directory, process.env);
  await putParameters(stack.endpoint);
  const session = beginSession({ ...stack.env, KEELSON_AUTH_SECRET: secret });
  await (await container.runContainer(server(), { port: 0, host: "127.0.0.1" })).close(); // makes tables and queues
  const left: { name: string; value: unknown }[] = [];
  for (const [index, line] of directoryLines.entries()) {
    // What was claimed so far would be forgotten until it is read; the last writes have to be the last.
    if (index === directoryLines.length - 2) await keepClaims(session.store);
    left.push({
      name: line.name,
      value: await line.leave(session.party(kept, line.name, "directory")),
    });
  }
  const leftMs = Date.now();
  const { pid } = JSON.parse(readFileSync(join(directory, "holder.json"), "utf8")) as {
    readonly pid: number;
  };
  process.kill(pid, "SIGKILL");
  session.close();
  const files = readCut(directory);
  rmSync(directory, { recursive: true, maxRetries: 20 });
  const { bin } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
    readonly bin: { readonly keelson: string };
  };
  const token = execFileSync(
    process.execPath,
    [
      join(folder, bin.keelson),
      "token",
      "--tenant",
      "acme",
      "--user",
      "ann",
      "--expires-in-seconds",
      "315360000",
    ],
    { env: { ...process.env, KEELSON_AUTH_SECRET: secret }, encoding: "utf8" },
  ).trim();
  return { files, left, leftMs, token };
}

async function keepClaims(store: ReturnType<typeof beginSession>["store"]): Promise<void> {
  const { once = [] } = await store.items();
  await store.put({ once: once.map((item) => ({ ...item, expiration: { N: "4102444800" } })) });
}

function ringParameters(): Record<string, string> {
  return { "/kept/earlier": keyRings.earlier, "/kept/rotated": keyRings.rotated };
}

async function putParameters(endpoint: string): Promise<void> {
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  const ssm = new SSMClient({ endpoint, region: "us-east-1", credentials });
  for (const [Name, Value] of Object.entries(ringParameters())) {
    await ssm.send(new PutParameterCommand({ Name, Value, Type: "SecureString" }));
  }
  ssm.destroy();
}

function fileOf(path: string): string {
  return join(folder, String(exports[path]?.default));
}

async function load<Module>(path: string): Promise<Module> {
  return (await import(pathToFileURL(fileOf(path)).href)) as Module; // the package's own entry point
}
