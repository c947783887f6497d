import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ranCommand } from "../../../../test/support/ran-command.ts";
import { command } from "./contract-command.ts";
import { reportJson, reportLines, reportMarkdown } from "./contract-report.ts";

const { usage } = command;

const [source, zod] = [
  new URL("../../../index.ts", import.meta.url).href,
  import.meta.resolve("zod"),
].map((url) => JSON.stringify(url));
const moduleOf = (declarations: string, options = "") =>
  `import { access, buildServer, createTenantConfig, createUserConfig, defineFeature } from ${source};
import * as z from ${zod};
export const server = buildServer({ features: [defineFeature("mugs", (r) => { ${declarations} })]${options} });`;
const show = (output: string, more = "") =>
  `r.query("mug.show", { route: "GET /mugs/:id", access: access.tenant, input: z.object({ id: z.string() }), output: ${output}, handler: async () => ({}), ${more} });`;
const mug = "z.object({ id: z.string(), size: z.number() })";
const messages = (payload: string, cron: string) => `
  r.event("mug.made", ${payload}, { keepDays: 30 });
  r.on("mug.made", { name: "count", handler: async () => {} });
  r.job("mug.wash", { input: ${payload}, handler: async () => {} });
  r.channel("mail", { input: ${payload}, send: async () => {} });
  r.schedule("mug.daily", { cron: "${cron}", handler: async () => {} });`;
const limit = (bounds: string) =>
  `r.config({ keys: { limit: createTenantConfig("number", { default: 5, bounds: ${bounds} }) } });`;
const create = (input: string, more = "") =>
  `r.write("mug.create", { route: "POST /mugs", access: access.tenant, input: ${input}, handler: async () => ({}), ${more} });`;
const all = (payload: string) =>
  `${show(mug)} ${messages(payload, "0 3 * * *")} ${limit("{ min: 1, max: 10 }")} ${create(mug)}`;
const files = {
  "server.mjs": moduleOf(all("z.object({ id: z.string() })"), ', basePath: "/api"'),
  "same.mjs": moduleOf(
    `${create(mug)} ${limit("{ max: 10, min: 1 }")} ${messages("z.object({ id: z.string() })", "0 3 * * *")} ${show("z.object({ size: z.number().describe('ml'), id: z.string() })")}`.replace(
      ".describe('ml')",
      "",
    ),
    ', basePath: "/api"',
  ),
  "broken.mjs": moduleOf(
    `${show("z.object({ id: z.string() })")} ${messages("z.object({ id: z.string().max(9) })", "0 4 * * *")} ${limit("{ min: 1, max: 5 }")}`,
    ', basePath: "/api"',
  ),
  "more.mjs": moduleOf(
    `${all("z.object({ id: z.string() })")} r.query("mug.list", { route: "GET /mugs", access: access.tenant, handler: async () => ({}) });`,
    ', basePath: "/api"',
  ),
  "renamed.mjs": moduleOf(
    all("z.object({ id: z.string() })").replace('"mug.show"', '"mug.look"'),
    ', basePath: "/api"',
  ),
  "unsaid.mjs": moduleOf(create("z.object({ size: z.custom(() => true) })")),
  "bytes.mjs": moduleOf(
    create(
      "z.object({ body: z.instanceof(Uint8Array) })",
      'body: "bytes", once: { required: true, keepSeconds: 600 }',
    ),
  ),
  "wrong.mjs": "throw new Error('no');",
  "none.json": "[]",
  "text.json": "{",
  "newer.json": `{ "format": 2 }`,
  "short.json": `{ "format": 1, "routes": [] }`,
  "nowhere.json": JSON.stringify({
    ...{ format: 1, events: [], jobs: [], channels: [], consumers: [], schedules: [], keys: [] },
    routes: [{ path: "/mugs", handler: "x", access: "tenant" }],
  }),
  "odd.json": JSON.stringify({
    ...{ format: 1, events: [], jobs: [], channels: [], consumers: [], schedules: [], keys: [] },
    routes: [
      { method: "POST", path: "/mugs", handler: "x", access: "tenant", input: { allOf: 7 } },
    ],
  }),
};

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-contract-"));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
});
afterAll(() => rm(folder, { recursive: true }));

const at = (name: string) => join(folder, name);
async function run(...args: readonly string[]) {
  const { code, out, err } = await ranCommand(["contract", ...args], {
    // Nobody listens there.
    env: {
      AWS_ENDPOINT_URL: "http://127.0.0.1:9",
      AWS_REGION: "eu-west-1",
      AWS_ACCESS_KEY_ID: "a",
      AWS_SECRET_ACCESS_KEY: "b",
    },
  });
  return {
    code,
    out: out.join("\n").replaceAll(`${folder}/`, ""),
    err: err.replaceAll(`${folder}/`, ""),
  };
}
const written = async (name: string) => {
  const file = at(`${name}.lock.json`);
  await run("write", at(name), "--file", file);
  return file;
};

describe("keelson contract write", () => {
  test("writes the server's contract, with the same bytes for declarations in a different order", async () => {
    const file = at("one.json");
    expect(await run("write", at("server.mjs"), "--file", file)).toEqual({
      code: 0,
      out: "one.json: 2 routes, 1 event, 1 job, 1 key",
      err: "",
    });
    const text = await readFile(file, "utf8");
    expect(await readFile(await written("same.mjs"), "utf8")).toBe(text);
    expect(JSON.parse(text)).toMatchObject({
      format: 1,
      routes: [
        {
          method: "POST",
          path: "/api/mugs",
          handler: "mugs.mug.create",
          access: "tenant",
          body: "json",
          key: "either",
        },
        {
          method: "GET",
          path: "/api/mugs/:id",
          input: { required: ["id"] },
          output: { required: ["id", "size"] },
        },
      ],
      events: [{ type: "mug.made", kept: 30, payload: { type: "object" } }],
      jobs: [{ name: "mugs.mug.wash" }],
      channels: [{ name: "mail" }],
      consumers: [{ name: "mugs.mug.count", event: "mug.made" }],
      schedules: [{ name: "mugs.mug.daily", cron: "0 3 * * *", timeZone: "UTC", missed: "once" }],
      keys: [{ id: "mugs:config:limit", bounds: { min: 1, max: 10 } }],
    });
    expect(text.endsWith("}\n")).toBe(true);
  });

  test("writes the same bytes for any order of enum values and of alternative access rules", async () => {
    const of = (values: string, numbers: string, rule: string) =>
      moduleOf(
        create(`z.object({ size: z.enum(${values}), count: z.literal(${numbers}) })`).replace(
          "access.tenant",
          `access.${rule}`,
        ),
      );
    await writeFile(
      at("ordered.mjs"),
      of('["s", "m"]', "[2, 10]", 'anyOf(access.admin, access.roles("editor"))'),
    );
    await writeFile(
      at("turned.mjs"),
      of('["m", "s"]', "[10, 2]", 'anyOf(access.roles("editor"), access.admin)'),
    );
    expect(await readFile(await written("turned.mjs"), "utf8")).toBe(
      await readFile(await written("ordered.mjs"), "utf8"),
    );
  });

  test("creates the lock's directory, and explains why a lock cannot be written", async () => {
    expect(await run("write", at("server.mjs"), "--file", at("made/for/it.json"))).toMatchObject({
      code: 0,
      err: "",
    });
    expect(await run("write", at("server.mjs"), "--file", at("made"))).toMatchObject({
      code: 1,
      err: 'keelson: "made" cannot be written: it is a directory; name a file in it',
    });
    expect(
      await run("write", at("server.mjs"), "--file", at("made/for/it.json/contract.json")),
    ).toMatchObject({
      code: 1,
      err: 'keelson: "made/for/it.json/contract.json" cannot be written: what should be its directory is a file',
    });
    expect(await run("write", at("server.mjs"), "--file", at("x".repeat(300)))).toMatchObject({
      code: 1,
      err: expect.stringMatching(/cannot be written: ENAMETOOLONG/),
    });
  });

  test("names each schema without a JSON Schema, except for a body of bytes", async () => {
    const { code, err } = await run("write", at("unsaid.mjs"), "--file", at("unsaid.json"));
    expect(code).toBe(0);
    expect(err).toMatch(/^keelson: not in the lock: POST \/mugs input: size: /);
    expect(await run("write", at("bytes.mjs"), "--file", at("bytes.json"))).toMatchObject({
      code: 0,
      err: "",
    });
    const { routes } = JSON.parse(await readFile(at("bytes.json"), "utf8"));
    expect(routes).toMatchObject([{ body: "bytes", key: "required", keptSeconds: 600 }]);
  });
});

describe("keelson contract check", () => {
  test("reports only that nothing has changed", async () => {
    const file = await written("server.mjs");
    expect(await run("check", at("same.mjs"), "--file", file)).toEqual({
      code: 0,
      out: "Nothing has changed.",
      err: "",
    });
    const { code, out } = await run("check", at("same.mjs"), "--file", file, "--json");
    expect([code, JSON.parse(out)]).toEqual([
      0,
      { changes: [], stored: [], stale: false, unsaid: [] },
    ]);
  });

  test("exits with 0 when nothing breaks, and reports that the lock is out of date", async () => {
    const file = await written("server.mjs");
    const { code, out } = await run("check", at("more.mjs"), "--file", file);
    expect(code).toBe(0);
    expect(out).toBe(
      `Breaks nobody:\n  GET /api/mugs: route-added\n\nNo change breaks the contract. The lock is older than the declarations: keelson contract write more.mjs --file server.mjs.lock.json`,
    );
    const renamed = await run("check", at("renamed.mjs"), "--file", file);
    expect(renamed).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^No change breaks the contract. The lock is older/),
    });
  });

  test("exits with 1 when a change breaks something, and says for whom, where and how to avoid it", async () => {
    const file = await written("server.mjs");
    const { code, out } = await run("check", at("broken.mjs"), "--file", file);
    expect(code).toBe(1);
    expect(out).toBe(`Breaks clients:
  GET /api/mugs/:id output.size: output-property-removed (required -> not there)
  POST /api/mugs: route-removed
  To keep it: add a route or an optional property and keep the old one.

Breaks consumers:
  channel mail message.id: message-max-length-lowered (none -> 9)
  event mug.made payload.id: payload-max-length-lowered (none -> 9)
  job mugs.mug.wash input.id: job-max-length-lowered (none -> 9)
  To keep it: declare another event or job, and remove the old one once all its messages are processed.

Breaks stored settings:
  mugs:config:limit: bounds-narrowed
  To keep it: see with --stored which rows it is; a renamed key says its old name as \`formerly\`.

Breaks nobody:
  schedule mugs.mug.daily: schedule-changed (0 3 * * * UTC, missed: once -> 0 4 * * * UTC, missed: once)

6 changes break the contract. To release anyway: keelson contract write broken.mjs --file server.mjs.lock.json`);
  });

  test("prints Markdown for a comment on a pull request", async () => {
    const { code, out } = await run(
      "check",
      at("broken.mjs"),
      "--file",
      await written("server.mjs"),
      "--markdown",
    );
    expect(code).toBe(1);
    expect(out).toContain(
      "## Contract\n\n### Breaks clients\n\n| Where | Rule | Change |\n|---|---|---|\n| `GET /api/mugs/:id output.size` | `output-property-removed` | `required -> not there` |\n| `POST /api/mugs` | `route-removed` |  |\n\nTo keep it: ",
    );
    expect(out).toMatch(
      /6 changes break the contract. To release anyway: `keelson contract write broken.mjs --file server.mjs.lock.json`$/,
    );
    const unsaid = await run(
      "check",
      at("unsaid.mjs"),
      "--file",
      await written("unsaid.mjs"),
      "--markdown",
    );
    expect(unsaid.out).toMatch(
      /### Not described, so that changes are not seen\n\n- `POST \/mugs input: size`: `/,
    );
  });

  test("prints JSON, with the schemas that it cannot compare", async () => {
    const { out, err } = await run(
      "check",
      at("unsaid.mjs"),
      "--file",
      await written("unsaid.mjs"),
      "--json",
    );
    expect(JSON.parse(out)).toMatchObject({
      changes: [],
      unsaid: [{ where: "POST /mugs input: size" }],
    });
    expect(err).toMatch(/not in the lock/);
  });

  test.each([
    ["none.json", /no format; keelson contract write makes one/],
    ["text.json", /is not JSON.*write it again/],
    ["newer.json", /its format is 2, and this keelson reads 1/],
    ["nowhere.json", /its routes are not a list/],
    ["short.json", /its events are not a list/],
    [
      "missing.json",
      /there is no lock .*keelson contract write server.mjs --file missing.json makes it/,
    ],
    [".", /the lock .* cannot be read: EISDIR/],
  ])("exits with 2 when the lock cannot be read: %s", async (name, message) => {
    const { code, err } = await run("check", at("server.mjs"), "--file", at(name));
    expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(message) });
  });

  test.each([
    ["wrong.mjs", 1, /cannot be loaded/],
    ["gone.mjs", 2, /there is no module/],
  ])(
    "tells a server that cannot be loaded from wrong usage: %s",
    async (name, expected, message) => {
      const { code, err } = await run("check", at(name), "--file", await written("server.mjs"));
      expect({ code, err }).toEqual({ code: expected, err: expect.stringMatching(message) });
    },
  );

  test("exits with 2 when the lock holds an invalid schema", async () => {
    const { code, err } = await run("check", at("unsaid.mjs"), "--file", at("odd.json"));
    expect({ code, err }).toEqual({
      code: 2,
      err: expect.stringMatching(
        /the lock "odd.json" is not taken: keelson did not write a part of it .*; write the file again/,
      ),
    });
  });

  test("exits with 1 when the tables cannot be read", async () => {
    const { code, err } = await run(
      "check",
      at("server.mjs"),
      "--file",
      await written("server.mjs"),
      "--stored",
    );
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringMatching(
        /the stored settings cannot be read: keelson-config: .*; keelson doctor server.mjs shows problems/,
      ),
    });
  });
});

describe("keelson contract exits with 2 and names its help for wrong usage:", () => {
  test.each([
    [[], /no action is given; use write or check/],
    [["lock"], /there is no action "lock"; use write or check/],
    [["check"], /no module is given; use keelson contract check <module>/],
    [["check", "a.mjs", "b.mjs"], /unexpected argument "b.mjs"/],
    [["check", "a.mjs", "--json", "--markdown"], /use one of the two/],
    [["write", "a.mjs", "--json"], /are of check/],
    [["write", "a.mjs", "--markdown"], /are of check/],
    [["write", "a.mjs", "--stored"], /are of check/],
    [["check", "a.mjs", "--loud"], /--loud/],
  ])("%j", async (args, message) => {
    const { code, err } = await run(...args);
    expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(message) });
    expect(err).toContain("Run `keelson contract --help`.");
  });

  test("--help prints the usage", async () => {
    expect(await run("--help")).toEqual({ code: 0, out: usage, err: "" });
  });
});

describe("the report", () => {
  const row = {
    key: "a:config:b",
    scope: "tenant",
    tenantId: "acme\u001b",
    verdict: "clamped",
    reads: 5,
  } as const;
  const stored = {
    stored: [
      row,
      { ...row, scope: "system", tenantId: null, verdict: "ignored", reads: null } as const,
    ],
    counts: { clamped: 1, fallback: 0, ignored: 2 },
    rows: 9,
    unlisted: 1,
    unopened: 3,
  };
  const lines = [
    "9 stored values: 1 clamped, 0 fall back, 2 ignored",
    "a:config:b, tenant of acme : clamped, reads 5",
    "a:config:b, system: ignored, reads null",
    "1 more are counted and not listed",
    "3 secrets could not be decrypted, so their values were not checked",
  ];
  const nothing = { changes: [], isStale: false, unsaid: [], stored };

  test("lists stored settings and their counts", () => {
    expect(reportLines(nothing, "write")).toEqual([...lines, "", "Nothing has changed."]);
    expect(reportMarkdown(nothing, "write")).toEqual([
      "## Contract",
      "",
      "### Stored settings",
      "",
      ...lines.map((line) => `- \`${line}\``),
      "",
      "Nothing has changed.",
    ]);
    const { unlisted, unopened, rows, counts } = stored;
    expect(JSON.parse(reportJson(nothing)[0])).toEqual({
      changes: [],
      stored: stored.stored,
      counts,
      rows,
      unlisted,
      unopened,
      stale: false,
      unsaid: [],
    });
    expect(
      reportLines(
        { ...nothing, stored: { ...stored, stored: [], unlisted: 0, unopened: 0 } },
        "write",
      ),
    ).toEqual([lines[0], "", "Nothing has changed."]);
  });

  test("removes control characters and escapes Markdown tables", () => {
    const changes = [
      {
        breaks: "client",
        where: "GET /a\u001b[31m|`b`",
        rule: "r",
        detail: "x".repeat(300),
      } as const,
    ];
    const checked = { ...nothing, changes, stored: undefined };
    expect(reportLines(checked, "write").slice(0, 2)).toEqual([
      "Breaks clients:",
      `  GET /a [31m|\`b\`: r (${"x".repeat(157)}...)`,
    ]);
    expect(reportLines(checked, "write").at(-1)).toBe(
      "1 change breaks the contract. To release anyway: write",
    );
    expect(reportMarkdown(checked, "write")[6]).toBe(
      `| \`GET /a [31m\\|'b'\` | \`r\` | \`${"x".repeat(157)}...\` |`,
    );
  });
});
