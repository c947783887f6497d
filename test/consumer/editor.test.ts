import { beforeAll, describe, expect, test } from "vitest";
import { type Mistake, mistakes, moduleOf } from "../types/mistakes.ts";
import { createProject, type Project } from "./support/project.ts";

/** `«?»` stands before a name that is hovered over, `«^»` where somebody asks what may stand there. */
const marked = `import { access, buildServer, createTenantConfig, createUserConfig, defineFeature, reply } from "keelson";
import { z } from "zod";

const plan = z.object({ plan: z.enum(["free", "pro"]), seats: z.number().optional() });
export const «?»files = defineFeature("files", (r) => {
  const «?»config = r.config({
    keys: {
      maxUploadSizeMb: createTenantConfig("number", { default: 10, bounds: { min: 1, max: 50 }, allowPerRequest: true }),
      title: createTenantConfig("text", { default: "" }),
      order: createUserConfig("select", { options: ["newest", "name"], default: "name" }),
      region: createTenantConfig("text", { encrypted: true }),
    },
  });
  r.query("plan.show", {
    output: plan,
    route: "GET /plan",
    access: access.tenant,
    handler: async («?»ctx) => {
      const { «?»tenantId } = ctx.user;
      await ctx.delivery.send("«^»log", { tenantId, title: await ctx.config(config.«?»title) });
      return reply({ plan: "pro" });
    },
  });
  r.query("plan.list", { output: plan, handler: async ({ requestId }) => (requestId === "" ? { plan: "«^»pro" } : { plan: "pro", «^» }) });
  return { config };
});
export const { «?»order } = files.config;
export const server = buildServer({ features: [files], config: { "«^»files:config:order": "«^»name" } });
`;

const edited = marked.replaceAll(/«.»/g, "");
/** Where the marks of a kind stood. */
const places = (mark: string) =>
  [...marked.matchAll(/«(.)»/g)].flatMap(({ 1: kind, index }, before) =>
    kind === mark ? [index - 3 * before] : [],
  );

/** Asks the language service what an editor shows at the marks. */
const ask = `const ts = require("typescript-5.9");
const { options } = ts.getParsedCommandLineOfConfigFile("tsconfig.json", {}, { ...ts.sys, onUnRecoverableConfigFileDiagnostic() {} });
const file = require("node:path").resolve("edited.ts");
const service = ts.createLanguageService({
  ...ts.sys,
  useCaseSensitiveFileNames: () => ts.sys.useCaseSensitiveFileNames,
  getScriptFileNames: () => [file],
  getScriptVersion: () => "1",
  getScriptSnapshot: (path) => (ts.sys.fileExists(path) ? ts.ScriptSnapshot.fromString(ts.sys.readFile(path)) : undefined),
  getCurrentDirectory: () => process.cwd(),
  getCompilationSettings: () => options,
  getDefaultLibFileName: ts.getDefaultLibFilePath,
});
const hovers = ${JSON.stringify(places("?"))}.map((at) => ts.displayPartsToString(service.getQuickInfoAtPosition(file, at).displayParts));
const completions = ${JSON.stringify(places("^"))}.map((at) => {
  const { entries } = service.getCompletionsAtPosition(file, at, {}) ?? { entries: [] };
  return entries.filter(({ kind }) => kind !== "keyword" && kind !== "warning").map(({ name }) => name).sort();
});
console.log(JSON.stringify({ hovers: hovers.map((text) => text.replaceAll(/\\s+/g, " ")), completions }));
`;

const versions = ["5.7", "5.9", "7"] as const;
let project: Project;

beforeAll(async () => {
  const compilerOptions = {
    ...{ target: "es2023", module: "nodenext", strict: true, noEmit: true, skipLibCheck: true },
    ...{ types: ["node"], moduleDetection: "force" },
  };
  const config = (files: readonly string[], isExact: boolean) =>
    JSON.stringify({
      compilerOptions: { ...compilerOptions, exactOptionalPropertyTypes: isExact },
      files,
    });
  const wrong = mistakes.map(({ name }) => `${name}.ts`);
  project = await createProject({
    name: "editor",
    dependencies: { zod: "4.6.7" },
    devDependencies: {
      "@types/node": "22.20.5",
      "typescript-5.7": "npm:typescript@5.7.3",
      "typescript-5.9": "npm:typescript@5.9.3",
      "typescript-7": "npm:typescript@7.0.2",
    },
    files: {
      ...Object.fromEntries(mistakes.map(({ name, code }) => [`${name}.ts`, moduleOf(code)])),
      "edited.ts": edited,
      "ask.cjs": ask,
      "tsconfig.json": config(["edited.ts"], false),
      "exact.json": config(["edited.ts", ...wrong], true),
      "inexact.json": config(["edited.ts", ...wrong], false),
    },
  });
});

describe("an editor", () => {
  let shown: { readonly hovers: readonly string[]; readonly completions: readonly string[][] };
  beforeAll(async () => {
    const { code, stdout, stderr } = await project.run("node", ["ask.cjs"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    shown = JSON.parse(stdout);
  });

  test("shows handles, callers and features with readable types", () => {
    const handles =
      "{ readonly maxUploadSizeMb: ConfigKeyHandle<number>; readonly title: ConfigKeyHandle<string>; " +
      'readonly order: ConfigKeyHandle<"newest" | "name">; readonly region: ConfigKeyHandle<string | undefined>; }';
    expect(shown.hovers).toEqual([
      `const files: Feature<{ readonly config: ${handles}; }, "files">`,
      `const config: ${handles}`,
      "(parameter) ctx: QueryContext<TenantUser>",
      "const tenantId: string",
      "(property) title: ConfigKeyHandle<string>",
      'const order: ConfigKeyHandle<"newest" | "name">',
    ]);
  });

  test("completes channels, results, key identifiers and their values", () => {
    expect(shown.completions).toEqual([
      ["log", "webhook"],
      ["free", "pro"],
      ["seats"],
      expect.arrayContaining([
        "files:config:max-upload-size-mb",
        "files:config:order",
        "files:config:region",
        "files:config:title",
      ]),
      ["name", "newest"],
    ]);
  });
});

/** What the compilers share of a message: earlier ones first name the argument that lacks a property. */
const shared = (error: string) =>
  error.replace(" | undefined'.", "'.").replace(/: Argument of type .*\n {2}(?=Property )/, ": ");

const compilers = versions.flatMap((version) => [
  [version, "exact"] as const,
  [version, "inexact"] as const,
]);
test.each(compilers)(
  "TypeScript %s reports the same message for each mistake, %s about optional properties",
  async (version, strictness) => {
    const compiler = `node_modules/typescript-${version}/bin/tsc`;
    const { stdout } = await project.run("node", [
      compiler,
      "-p",
      `${strictness}.json`,
      "--pretty",
      "false",
    ]);

    const said = stdout
      .trim()
      .split(/\n(?! )/)
      .map((error) => shared(error.replace(/^(.+)\.ts\(\d+,\d+\): error TS\d+: /, "$1: ")));
    // Only with the option, the compiler adds this advice.
    const advice = / with 'exactOptionalPropertyTypes: true'\. Consider adding .* properties/g;
    const expected = mistakes.map(({ name, message }: Mistake) => {
      const told = shared(`${name}: ${message}`);
      return strictness === "exact" ? told : told.replaceAll(advice, "");
    });
    expect(said.sort()).toEqual(expected.sort());
  },
);
