import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { nameOf } from "../docs/compile.ts";
import { codeBlocks, textOf } from "../docs/markdown.ts";
import { createProject, type Project } from "./support/project.ts";

const { devDependencies } = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"),
);
const version = (name: string): string => devDependencies[name];

const entry = `import { access, buildServer, defineFeature } from "keelson";
import { lambdaHttp } from "keelson/lambda";

const hello = defineFeature("hello", (r) => {
  r.query("hello.say", { route: "GET /hello", access: access.everyone, handler: async () => ({ hello: "you" }) });
});

export const handler = lambdaHttp(buildServer({ features: [hello] }));
`;

/** The build scripts of docs/bundle.md, each of which writes to a folder of its name. */
const scripts = {
  rolldown: documented("build.ts"),
  esbuild: documented("build-esbuild.ts"),
  vite: documented("vite.config.ts"),
};
const names = Object.keys(scripts) as (keyof typeof scripts)[]; // safe: it is an object of these alone

function documented(name: string): string {
  const blocks = codeBlocks("docs/bundle.md", textOf("docs/bundle.md"));
  return blocks.find((block) => nameOf(block) === name)?.code ?? "";
}

let project: Project;
beforeAll(async () => {
  project = await createProject({
    name: "bundle",
    devDependencies: {
      esbuild: version("esbuild"),
      rolldown: version("rolldown"),
      typescript: version("typescript"),
      vite: version("vite"),
    },
    packageJson: { type: "module" },
    files: {
      "src/lambda.ts": entry,
      "build.ts": scripts.rolldown.replace('"dist"', '"rolldown"'),
      "build-esbuild.ts": scripts.esbuild.replace('"dist"', '"esbuild"'),
      "vite.config.ts": scripts.vite,
      "invoke.mjs": `import { registerHooks } from "node:module";
let read = 0;
registerHooks({ load: (url, context, next) => (url.startsWith("file:") && read++, next(url, context)) });
const { handler } = await import(process.argv[2]);
const http = { method: "GET", path: "/hello", sourceIp: "192.0.2.1" };
const event = { version: "2.0", rawPath: "/hello", rawQueryString: "", headers: {}, requestContext: { http, stage: "$default" } };
const { statusCode, body } = await handler(event, { awsRequestId: "a1", functionName: "hello", getRemainingTimeInMillis: () => 30_000 });
console.log(JSON.stringify({ statusCode, body, read }));
process.exit();
`,
    },
  });
});

const commands: Record<(typeof names)[number], [string, string[]]> = {
  rolldown: ["node", ["build.ts"]],
  esbuild: ["node", ["build-esbuild.ts"]],
  vite: ["vite", ["build", "--ssr", "src/lambda.ts", "--outDir", "vite"]],
};

test.each(names)(
  "a function bundled by %s answers without node_modules, from two files and the bundler's helpers",
  async (name) => {
    const built = await project.run(...commands[name]);
    const lambda = {
      AWS_LAMBDA_FUNCTION_NAME: "hello",
      AWS_REGION: "eu-central-1",
      KEELSON_TABLE_CONFIG: "config",
    };
    const credentials = {
      AWS_ACCESS_KEY_ID: "id",
      AWS_SECRET_ACCESS_KEY: "secret",
      AWS_SESSION_TOKEN: "token",
    };
    const { code, stdout, stderr } = await project.run(
      "node",
      ["invoke.mjs", `./${name}/lambda.mjs`],
      {
        env: { ...lambda, ...credentials },
      },
    );

    expect(built).toMatchObject({ code: 0, stderr: "" });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(JSON.parse(stdout.trim().split("\n").at(-1) ?? "")).toEqual({
      statusCode: 200,
      body: '{"hello":"you"}',
      read: name === "esbuild" ? 2 : 3, // Rolldown's helpers are a file of their own
    });
    expect(bareImports(join(project.directory, name))).toEqual([]);
    // Making its members takes 5 ms, so only a key with a long tenant loads it; esbuild groups files in another way.
    if (name !== "esbuild")
      expect(readFileSync(join(project.directory, name, "lambda.mjs"), "utf8")).not.toMatch(
        /(?:\bfrom ?["']|\bimport ?["']|@__PURE__ \*\/ process\.getBuiltinModule\(.)node:crypto/,
      );
  },
);

test("the build scripts compile with the declarations of their imports", async () => {
  const options = [
    "--noEmit",
    "--strict",
    "--exactOptionalPropertyTypes",
    "--module",
    "nodenext",
    "--target",
    "es2024",
  ];
  const { code, stdout } = await project.run("tsc", [
    ...options,
    "--skipLibCheck",
    "build.ts",
    "build-esbuild.ts",
    "vite.config.ts",
  ]);

  expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
});

test("the declarations of keelson/bundle depend on no bundler", async () => {
  const bare = await createProject({
    name: "bundle-types",
    devDependencies: { typescript: version("typescript") },
    packageJson: { type: "module" },
    files: {
      "build.ts":
        'import { esbuildPlugin, rolldownPlugin } from "keelson/bundle";\nesbuildPlugin();\nrolldownPlugin();\n',
    },
  });
  const { code, stdout } = await bare.run("tsc", [
    "--noEmit",
    "--strict",
    "--module",
    "nodenext",
    "--target",
    "es2024",
    "build.ts",
  ]);

  expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
});

/** What the files of a folder import that is not beside them. */
function bareImports(folder: string): readonly string[] {
  const files = readdirSync(folder).filter((file) => file.endsWith(".mjs"));
  const texts = files.map((file) => readFileSync(join(folder, file), "utf8"));
  return texts.flatMap((text) =>
    [...text.matchAll(/(?<=^|;)import[^;"]*"([^."][^"]*)"/gm)].map(([, path = ""]) => path),
  );
}
