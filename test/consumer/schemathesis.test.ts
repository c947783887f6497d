import { type ExecFileException, execFile } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type StartedProcess, signalGroup, startProcess } from "../support/process.ts";

const root = join(import.meta.dirname, "../..");
const directory = mkdtempSync(join(tmpdir(), "keelson-schemathesis-"));
const common = { NODE_ENV: "development", KEELSON_AUTH_SECRET: undefined };

let schemathesis: string;
beforeAll(async () => {
  // It leaves its cache where it runs, and looks for its hooks there.
  for (const file of ["schemathesis.toml", "hooks.py"])
    cpSync(join(root, "test/schemathesis", file), join(directory, file));
  // Safe: so it is declared in the script, which has no types.
  const { installSchemathesis } = (await import(
    pathToFileURL(join(root, "scripts/package-emulator.mjs")).href
  )) as {
    installSchemathesis(say: (line: string) => void): string;
  };
  schemathesis = installSchemathesis(console.log);
});

let server: StartedProcess | undefined;
afterAll(async () => {
  if (server !== undefined) signalGroup(server, "SIGKILL");
  await server?.exited;
  rmSync(directory, { recursive: true, force: true, maxRetries: 20 });
});

const each = [
  { name: "the sample", module: "examples/files/main.ts", basePath: "" },
  {
    name: "an application with every feature",
    module: "test/schemathesis/everything.ts",
    basePath: "/api",
  },
];
// All are deterministic: requests that the document allows and forbids, at the bounds of each parameter and body.
test.each(each)(
  "Schemathesis finds no difference between $name and its document",
  async (given) => {
    const env = { ...common, KEELSON_DIRECTORY: join(directory, given.basePath || "root") };
    const sources = ["--import", join(root, "test/support/keelson-sources.mjs")];
    server = await startProcess(process.execPath, [...sources, join(root, given.module)], {
      ...env,
      PORT: "0",
      LOG_FORMAT: "json",
    });
    const parameters = ["--roles", "admin,editor,systemAdmin", "--tenant", "acme", "--user", "ann"];
    const token = await run(
      process.execPath,
      [join(root, "src/tools/cli/main.ts"), "token", ...parameters],
      env,
    );
    const { code, output } = await run(
      schemathesis,
      [
        ...["run", `http://127.0.0.1:${server.port}${given.basePath}/openapi.json`],
        ...["--header", `Authorization: Bearer ${token.output.trim()}`],
        ...[
          "--phases",
          "coverage",
          "--exclude-checks",
          "positive_data_acceptance",
          "--continue-on-failure",
        ],
      ],
      {},
    );
    signalGroup(server, "SIGKILL");

    expect(code, output).toBe(0);
    expect(Number(/generated, (\d+) passed/.exec(output)?.[1])).toBeGreaterThan(500);
  },
);

/** Runs a program to its end, in a directory of its own. */
function run(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
) {
  const options = { cwd: directory, env: { ...process.env, ...env }, maxBuffer: 64_000_000 };
  return new Promise<{ code: ExecFileException["code"] | number; output: string }>((resolve) => {
    execFile(program, args, options, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : (error.code ?? 1), output: `${stdout}${stderr}` }),
    );
  });
}
