import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ranCommand } from "../../../../test/support/ran-command.ts";
import { command } from "./infra-command.ts";

const { usage } = command;

const source = JSON.stringify(new URL("../../../index.ts", import.meta.url).href);
const moduleOf = (declarations: string, options = "") =>
  `import { access, buildServer, defineFeature } from ${source};
export const server = buildServer({ features: [defineFeature("mugs", (r) => { ${declarations} })]${options} });`;
const mugs = `r.table("mugs", { partitionKey: "pk", tenant: false });`;
const files = {
  "server.mjs": moduleOf(mugs),
  "more.mjs": moduleOf(`${mugs} r.table("cups", { partitionKey: "pk", tenant: false });`),
  "asking.mjs": moduleOf(
    `${mugs} r.query("mug.ask", { route: "GET /mugs", access: access.everyone, handler: async () => 1 });`,
  ),
  "less.mjs": moduleOf(""),
  "long.mjs": moduleOf("", `, dynamodb: { prefix: "${"p".repeat(90)}" }`),
  "many.mjs": moduleOf(
    `for (let i = 0; i < 70; i += 1) r.table("t" + i + "x", { partitionKey: "pk", tenant: false });`,
  ),
  "too-many.mjs": moduleOf(
    `for (let i = 0; i < 600; i += 1) r.table("t" + i + "x", { partitionKey: "pk", tenant: false });`,
  ),
  "handlers.mjs": moduleOf(
    `for (let i = 0; i < 100; i += 1) r.query("mug.ask" + i, { route: "GET /mugs/" + i, access: access.everyone, handler: async () => 1 });`,
  ),
  "list.json": "[]",
  "empty.json": "{}",
  "odd.json": `{ "Resources": { "A": 1 } }`,
  "null.json": "null",
  "properties.json": `{ "Resources": { "A": { "Type": "T", "Properties": null } } }`,
  "parameters.json": `{ "Resources": {}, "Parameters": { "P": null } }`,
  "outputs.json": `{ "Resources": {}, "Outputs": [] }`,
  "loud.json": JSON.stringify({ Resources: { "\u001b[31mA\nB": { Type: "T" } } }),
  "broken.json": "{",
  "own.json": JSON.stringify({
    Globals: { Function: { Environment: { Variables: { MUG_COLOUR: "blue" } } } },
    Resources: { MugBucket: { Type: "AWS::S3::Bucket" } },
  }),
  "taken.json": JSON.stringify({ Resources: { MugsTable: { Type: "AWS::S3::Bucket" } } }),
  "untyped.json": JSON.stringify({ Resources: { MugBucket: {} } }),
};

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-infra-"));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
});
afterAll(() => rm(folder, { recursive: true }));

const at = (name: string) => join(folder, name);
const run = (...args: readonly string[]) => ranCommand(["infra", ...args]);

describe("keelson infra", () => {
  test("writes the template into a folder, the same bytes each time, and prints its size", async () => {
    const file = at("made/data-dev.json");
    const { code, out, err } = await run(at("server.mjs"), "--out", at("made"), "--part", "data");
    const text = await readFile(file, "utf8");
    expect({ code, out, err }).toEqual({
      code: 0,
      out: [`${file}: 3 resources, ${text.length} bytes`],
      err: "",
    });
    expect(Object.keys(JSON.parse(text).Resources)).toEqual([
      "ConfigTable",
      "OnceTable",
      "MugsTable",
    ]);
    await run(at("server.mjs"), "--out", at("made"), "--part", "data");
    expect(await readFile(file, "utf8")).toBe(text);
  });

  test("writes data, functions or both, with one function for all routes or one for each handler", async () => {
    const written = async (name: string, ...args: readonly string[]) => {
      await run(at("asking.mjs"), "--out", at("made"), ...args);
      return Object.keys(JSON.parse(await readFile(at(`made/${name}-dev.json`), "utf8")).Resources);
    };
    const all = await written("all");
    const functions = await written("functions", "--part", "functions");
    expect(all).toEqual([...(await written("data", "--part", "data")), ...functions]);
    expect(functions).toContain("HttpLambdaFunction");
    expect(await written("all", "--shape", "each")).toEqual(
      expect.arrayContaining([...all, "MugsMugAskLambdaFunction"]),
    );
  });

  test("merges in the user's own template, and names a resource that conflicts", async () => {
    const withFile = (name: string) =>
      run(at("server.mjs"), "--out", at("made"), "--with", at(name));
    expect(await withFile("own.json")).toMatchObject({ code: 0, err: "" });
    const { Resources } = JSON.parse(await readFile(at("made/all-dev.json"), "utf8"));
    expect(Resources.MugBucket).toEqual({ Type: "AWS::S3::Bucket" });
    expect(Resources.HttpLambdaFunction.Properties.Environment.Variables.MUG_COLOUR).toBe("blue");
    expect(await withFile("taken.json")).toEqual({
      code: 1,
      out: [],
      err: "keelson: Resources.MugsTable is keelson's own; choose another name",
    });
  });

  test("writes each front, streaming where it can", async () => {
    const types = async (...args: readonly string[]) => {
      const { code } = await run(at("asking.mjs"), "--out", at("fronts"), ...args);
      const { Resources } = JSON.parse(await readFile(at("fronts/all-dev.json"), "utf8"));
      return { code, text: JSON.stringify(Resources) };
    };
    const http = await types();
    expect(await types("--front", "http")).toEqual(http);
    expect((await types("--front", "web")).text).toContain("AWS::Lambda::WebFunctionRevision");
    expect((await types("--front", "rest", "--stream")).text).toContain("ResponseTransferMode");
    expect((await types("--front", "url", "--stream")).text).toContain("RESPONSE_STREAM");
    expect((await types("--front", "url")).text).not.toContain("RESPONSE_STREAM");
  });

  test("prints the statement that the code bucket's policy needs for a Web Function", async () => {
    const web = (...args: readonly string[]) =>
      run(at("asking.mjs"), "--out", at("web"), "--front", "web", ...args);
    const { code, out, err } = await web();
    expect([code, out.length]).toEqual([0, 1]);
    expect(err).toContain("the bucket of CodeBucket must have versioning enabled");
    const statement = JSON.parse(err.slice(err.indexOf("{")));
    expect(statement).toEqual({
      Effect: "Allow",
      Principal: { Service: "lambda.amazonaws.com" },
      Action: ["s3:GetObject", "s3:GetObjectVersion"],
      Resource: "arn:aws:s3:::<CodeBucket>/*",
      Condition: {
        StringEquals: { "aws:SourceAccount": "<account>" },
        ArnLike: { "aws:SourceArn": "arn:aws:lambda:<region>:<account>:web-function/*" },
      },
    });
    expect(await readFile(at("web/all-dev.json"), "utf8")).not.toContain("BucketPolicy");
    expect((await web("--part", "data")).err).toBe("");
  });

  test("includes the stage in names", async () => {
    await run(at("server.mjs"), "--out", at("made"), "--stage", "prod", "--part", "data");
    expect(
      JSON.parse(await readFile(at("made/data-prod.json"), "utf8")).Parameters.NamePrefix.Default,
    ).toBe("keelson-prod");
  });

  test("prints the changes against an earlier template, and writes no file", async () => {
    await run(at("server.mjs"), "--out", at("before"), "--part", "data");
    const before = at("before/data-dev.json");
    const diff = (name: string) =>
      run(at(name), "--diff", before, "--out", at("nowhere"), "--part", "data");
    expect(await diff("server.mjs")).toEqual({ code: 0, out: ["nothing changes"], err: "" });
    expect(await diff("more.mjs")).toEqual({
      code: 0,
      out: ["added: CupsTable (AWS::DynamoDB::Table)", "added: output CupsTableName"],
      err: "",
    });
    await expect(readFile(at("nowhere/data-dev.json"))).rejects.toThrow("ENOENT");
  });

  test("warns that a table is removed, and exits with 1", async () => {
    await run(at("server.mjs"), "--out", at("before"), "--part", "data");
    expect(
      await run(at("less.mjs"), "--part", "data", "--diff", at("before/data-dev.json")),
    ).toEqual({
      code: 1,
      out: ["removed: output MugsTableName"],
      err: "DANGER: the table keelson-dev-mugs is removed: MugsTable (AWS::DynamoDB::Table) leaves the stack and stays in the account, outside of any stack",
    });
  });

  test("warns about a template too long for a direct call, and refuses one over CloudFormation's limits", async () => {
    const long = await run(at("many.mjs"), "--out", at("made"), "--part", "data");
    expect([long.code, long.err]).toEqual([0, expect.stringContaining("deployed from a bucket")]);
    const refused = await run(at("too-many.mjs"), "--out", at("refused"), "--part", "data");
    expect([refused.code, refused.out]).toEqual([1, []]);
    expect(refused.err).toContain(
      "the template cannot be deployed: it has 602 resources, and CloudFormation takes 500",
    );
    await expect(readFile(at("refused/data-dev.json"))).rejects.toThrow("ENOENT");
  });

  test("writes nested templates for more functions than one template takes, and reads them again", async () => {
    const each = (...args: readonly string[]) =>
      run(at("handlers.mjs"), "--shape", "each", "--out", at("nested"), ...args);
    const { code, out, err } = await each();
    const parts = ["mugs", "mugs.2", "mugs.3", "mugs.4"].map((part) => `all-dev.${part}.json`);
    const files = ["all-dev.json", ...parts].map((name) => at(`nested/${name}`));
    expect([code, err]).toEqual([
      0,
      `keelson: ${files[0]}: its functions are in nested templates: run aws cloudformation package first, and deploy its output`,
    ]);
    expect(out).toEqual(files.map((file) => expect.stringMatching(`^${file}: [0-9]+ resources, `)));
    expect(await each("--diff", at("nested/all-dev.json"))).toEqual({
      code: 0,
      out: ["nothing changes"],
      err: "",
    });
    expect(await run(at("handlers.mjs"), "--check", at("nested/all-dev.json"))).toMatchObject({
      code: 0,
      err: "",
    });
    await rm(at("nested/all-dev.mugs.2.json"));
    const { err: missing } = await run(at("handlers.mjs"), "--check", at("nested/all-dev.json"));
    expect(missing).toContain("the server needs a function mugsMugAsk91, which is missing");
  });

  test("exits with 1 and the reason when no template can be made", async () => {
    expect(await run(at("long.mjs"), "--out", at("made"))).toEqual({
      code: 1,
      out: [],
      err: expect.stringMatching(/^keelson: names would start with "p+-dev"/),
    });
  });

  test.each<[string[], RegExp]>([
    [[], /no module is given/],
    [["a.ts", "b.ts"], /unexpected argument "b.ts"/],
    [["nowhere.ts"], /there is no module "nowhere.ts"/],
    [["a.ts", "--fast"], /--fast/],
    [["a.ts", "--stage", "Prod"], /--stage "Prod" is not a valid name/],
    [["a.ts", "--limited", "many"], /--limited "many" is not a number of refusals a minute/],
    [["a.ts", "--part", "roles"], /--part "roles" is unknown; use data, functions or all/],
    [["a.ts", "--shape", "two"], /--shape "two" is unknown; use one or each/],
    [["a.ts", "--front", "alb"], /--front "alb" is unknown; use http, web, rest or url/],
    [["a.ts", "--stream"], /--front http, which cannot stream; use --front rest or url/],
    [["a.ts", "--front", "web", "--stream"], /--front web, which always streams; use --front rest/],
    [["a.ts", "--front", "url", "--shape", "each"], /leave out --shape each, or use --front http/],
    [["a.ts", "--front", "web", "--shape", "each"], /--front web has one function for all routes/],
    [["a.ts", "--with", "nowhere.json"], /--with "nowhere.json" cannot be read as JSON: ENOENT/],
    [["a.ts", "--diff", "nowhere.json"], /--diff "nowhere.json" cannot be read as JSON: ENOENT/],
  ])("exits with 2 on wrong usage: %j", async (args, message) => {
    const { code, err } = await run(...args);
    expect([code, err]).toEqual([2, expect.stringMatching(message)]);
    expect(err).toContain("Run `keelson infra --help`.");
  });

  test("exits with 2 when the user's own template is invalid, and names the faulty resource", async () => {
    const { code, err } = await run(at("server.mjs"), "--with", at("untyped.json"));
    expect([code, err]).toEqual([
      2,
      expect.stringContaining('untyped.json" is not taken: Resources.MugBucket has no Type'),
    ]);
  });

  test("removes control characters from names", async () => {
    const { out } = await run(at("server.mjs"), "--diff", at("loud.json"));
    expect(out[0]).toBe("removed:  [31mA B (T)");
    expect(out.join("")).not.toMatch(/\p{C}/u);
  });

  const others = [
    "list",
    "empty",
    "odd",
    "broken",
    "null",
    "properties",
    "parameters",
    "outputs",
  ].map((name) => `${name}.json`);
  test.each(others)("refuses to compare with a file that is not a template: %s", async (name) => {
    const { code, err } = await run(at("server.mjs"), "--diff", at(name));
    expect([code, err]).toEqual([
      2,
      expect.stringMatching(/is not a CloudFormation template|cannot be read as JSON/),
    ]);
  });

  test("refuses the alarm for rate limits to a server that does not measure", async () => {
    const { code, err } = await run(at("server.mjs"), "--limited", "100", "--out", at("made"));
    expect([code, err]).toEqual([1, expect.stringContaining("leave out --limited")]);
  });

  test("prints its help", async () => {
    expect(await run("--help")).toEqual({ code: 0, out: [usage], err: "" });
  });
});
