import { access, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ranCommand } from "../../../../test/support/ran-command.ts";
import type { Server } from "../../../app/server/server.ts";
import { startTestApp, type TestApp } from "../../testing/index.ts";
import type { CommandContext } from "../setup/define-command.ts";
import { command } from "./tenant-command.ts";

const source = JSON.stringify(new URL("../../../index.ts", import.meta.url).href);
const server = `import { access, buildServer, defineFeature } from ${source};
const notes = defineFeature("notes", (r) => {
  r.write("note.write", { route: "POST /notes", access: access.authenticated, handler: async () => ({}) });
});
export const server = buildServer({ features: [notes], tenants: true, log: { level: "error" } });`;

let folder: string;
let app: TestApp;
let loaded: Server;
const at = (name: string) => join(folder, name);
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-registry-"));
  await writeFile(at("server.mjs"), server);
  // A module of its own: the command binds the server that it loads, and closes it.
  await writeFile(at("app.mjs"), server);
  await writeFile(at("plain.mjs"), server.replace("tenants: true, ", ""));
  ({ server: loaded } = await import(/* @vite-ignore */ pathToFileURL(at("app.mjs")).href));
  app = await startTestApp(loaded);
});
afterAll(async () => {
  await app.close();
  await rm(folder, { recursive: true });
});

const run = (
  [action = "", ...others]: readonly string[],
  context: Partial<CommandContext> = {},
  module = "server.mjs",
) =>
  ranCommand(["tenant", action, at(module), ...others], {
    env: app.env,
    clock: { now: () => 0 },
    ...context,
  });
const parsed = (lines: readonly string[]) => lines.map((line) => JSON.parse(line));
const statusOf = async (tenantId: string, key = "first") =>
  (
    await app.fetch("/notes", {
      method: "POST",
      headers: { "idempotency-key": key },
      as: { id: "ann", tenantId },
    })
  ).status;
const epoch = "1970-01-01T00:00:00.000Z";

describe("keelson tenant", () => {
  test("says that no tenant is registered", async () => {
    const err = "keelson: no tenant is registered";
    expect(await run(["list"])).toEqual({ code: 0, out: [], err });
  });

  test("creates, suspends and resumes a tenant, and prints its state", async () => {
    expect(
      await run(["create", "acme", "--name", "Acme Ltd", "--time-zone", "Europe/Berlin"]),
    ).toEqual({ code: 0, out: ["created acme (Acme Ltd), Europe/Berlin, active"], err: "" });
    expect(await statusOf("acme")).toBe(200);
    expect(await run(["suspend", "acme", "--reason", "unpaid"])).toEqual({
      code: 0,
      out: [`suspended acme (Acme Ltd), Europe/Berlin, suspended since ${epoch}: unpaid`],
      err: "",
    });
    await app.clock.advance(5_000);
    expect(await statusOf("acme")).toBe(403);
    expect((await run(["resume", "acme"])).out).toEqual([
      "resumed acme (Acme Ltd), Europe/Berlin, active",
    ]);
    await app.clock.advance(5_000);
    expect(await statusOf("acme")).toBe(200);
  });

  test("prints tenants as JSON, one per line", async () => {
    const created = await run(["create", "bob", "--json"]);
    const bob = { id: "bob", timeZone: "UTC", createdAt: epoch, status: "active" };
    expect([created.code, parsed(created.out)]).toEqual([0, [bob]]);
    const listed = await run(["list", "--json"]);
    expect(parsed(listed.out)).toMatchObject([{ id: "acme" }, bob]);
    await run(["suspend", "bob", "--reason", "unpaid"]);
    expect((await run(["list"])).out).toEqual([
      expect.stringMatching(/^id {4}name +timeZone +createdAt +status +since +reason$/),
      expect.stringMatching(/^acme {2}Acme Ltd {2}Europe\/Berlin +\S+ +active +- +-$/),
      expect.stringMatching(`^bob +- +UTC +${epoch} +suspended +${epoch} +unpaid$`),
    ]);
    await run(["resume", "bob"]);
  });

  test("lists all pages, or one, and names the next", async () => {
    const first = await run(["list", "--limit", "1"]);
    expect(first.out).toEqual([expect.stringMatching(/^id /), expect.stringMatching(/^acme /)]);
    const [, cursor = ""] = /^keelson: there are more: --cursor (\S+)$/.exec(first.err) ?? [];
    const second = await run(["list", "--limit", "1", "--cursor", cursor]);
    expect(second.out.slice(1)).toEqual([expect.stringMatching(/^bob /)]);
  });

  test.each([
    [["create", "acme"], 1, "Conflict: the tenant acme is registered already"],
    [["suspend", "nobody", "--reason", "unpaid"], 1, "tenant nobody not found"],
    [["resume", "nobody"], 1, "tenant nobody not found"],
    [["suspend", "acme"], 2, "--reason is missing; use --reason <text>"],
    [["create"], 2, expect.stringContaining("no tenant is given; use keelson tenant create ")],
    [
      ["create", "a\nb"],
      2,
      "the tenant is not a string of 1 to 256 characters without control characters",
    ],
    [
      ["create", "c", "--time-zone", "Moon"],
      2,
      "timeZone has to be an IANA time zone, such as Europe/Berlin",
    ],
    [["list", "--limit", "x"], 2, "limit has to be a whole number from 1 to 1000"],
    [["list", "--cursor", "x"], 2, "cursor has to be the cursor of a page"],
    [["list", "acme"], 2, 'unexpected argument "acme"'],
    [["list", "--reason", "x"], 2, "--reason is not an option of list"],
    [["resume", "acme", "--dry-run"], 2, "--dry-run is not an option of resume"],
    [
      ["stop", "acme"],
      2,
      'there is no action "stop"; use list, create, suspend, resume, export or erase',
    ],
  ])("refuses %j with %i", async (args, code, message) => {
    const { err, ...ended } = await run(args);
    const [first] = err.split("\n");
    expect({ code: ended.code, first: first?.replace("keelson: ", "") }).toEqual({
      code,
      first: message,
    });
  });

  test("says how to turn the registry on", async () => {
    expect(await run(["list"], {}, "plain.mjs")).toMatchObject({
      code: 1,
      err: "keelson: the server registers no tenants; pass tenants: true to buildServer",
    });
  });

  test("prints its usage with --help", async () => {
    const { code, out } = await ranCommand(["tenant", "--help"]);
    expect([code, out]).toEqual([0, [command.usage]]);
  });
});

describe("keelson tenant erase of a registered tenant", () => {
  const rowsOf = async (tenantId: string) => {
    const root = { id: "root", tenantId: "ops", roles: ["systemAdmin"] };
    const database = (await app.ctx(root)).acrossTenants("a test");
    const { Items = [] } = await database.send(new ScanCommand({ TableName: "keelson-once" }));
    return Items.filter((item) => item["tenantId"] === tenantId);
  };
  let count = 0;
  let tenant = "";
  beforeEach(async () => {
    count += 1;
    tenant = `erased-${count}`;
    await loaded.tenants.create({ id: tenant });
    expect(await statusOf(tenant)).toBe(200);
  });

  test("needs a suspended one, and removes the registration last", async () => {
    const refused = await run(["erase", tenant, "--yes"]);
    expect([refused.code, refused.err]).toEqual([
      1,
      "keelson: the tenant is active; first suspend it: keelson tenant suspend <module> <id> --reason <text>",
    ]);
    expect(await rowsOf(tenant)).toHaveLength(3);

    await loaded.tenants.suspend(tenant, { reason: "left" });
    const { code, out } = await run(["erase", tenant, "--yes"]);
    expect([code, out.slice(0, 4)]).toEqual([
      0,
      [
        "keelson-once: 1 row erased",
        "keelson-config: 0 rows erased",
        `tenant "${tenant}": 1 row erased in 2 passes`,
        "registration erased",
      ],
    ]);
    expect(await rowsOf(tenant)).toEqual([]);
    await expect(loaded.tenants.get(tenant)).rejects.toThrow("not found");
    const again = await run(["erase", tenant, "--yes", "--json"]);
    expect([again.code, JSON.parse(again.out.join("\n")).registration]).toEqual([0, undefined]);
  });

  test("only counts with --dry-run, whatever its state", async () => {
    const { code, out } = await run(["erase", tenant, "--dry-run"]);
    expect([code, out[0], out[3]]).toEqual([0, "keelson-once: 1 row found", "registration kept"]);
    expect(await rowsOf(tenant)).toHaveLength(3);
  });

  test("keeps the registration of a tenant that is resumed meanwhile", async () => {
    await loaded.tenants.suspend(tenant, { reason: "left" });
    const ask = async () => {
      await loaded.tenants.resume(tenant);
      return tenant;
    };
    const { code, err } = await run(["erase", tenant], { ask });
    expect([code, err]).toEqual([
      1,
      "keelson: the tenant was resumed in the meantime; suspend it, and run this again",
    ]);
    expect((await loaded.tenants.get(tenant)).status).toBe("active");
  });

  test("reads every table again after such a failure, if it keeps its state", async () => {
    await loaded.tenants.suspend(tenant, { reason: "left" });
    const ask = async () => {
      await loaded.tenants.resume(tenant);
      return tenant;
    };
    const args = ["erase", tenant, "--state", at("state")];
    expect((await run(args, { ask })).code).toBe(1);
    expect(await statusOf(tenant, "second")).toBe(200);
    await loaded.tenants.suspend(tenant, { reason: "left" });
    const { code, err } = await run([...args, "--yes"]);
    expect([code, err]).toEqual([0, ""]);
    expect(await rowsOf(tenant)).toEqual([]);
  });

  test("does not resume the state of an erasure before another suspension", async () => {
    await loaded.tenants.suspend(tenant, { reason: "left" });
    const args = ["erase", tenant, "--state", at("cut"), "--yes"];
    const progress = () => {
      throw new Error("cut");
    };
    let pages = 0;
    const cut = { progress: (line: string) => void (line !== "" && ++pages > 1 && progress()) };
    expect((await run(args, cut)).code).toBe(1);
    await loaded.tenants.resume(tenant);
    await app.clock.advance(1);
    await loaded.tenants.suspend(tenant, { reason: "left again" });
    const { code, err } = await run(args);
    expect([code, err]).toEqual([
      1,
      `keelson: ${at("cut")} is not of this erase; remove it, or name another file`,
    ]);
    await rm(at("cut"));
    expect((await run(args)).code).toBe(0);
  });

  test("keeps a tenant that is resumed and suspended again meanwhile", async () => {
    await loaded.tenants.suspend(tenant, { reason: "left" });
    const ask = async () => {
      await loaded.tenants.resume(tenant);
      await app.clock.advance(1);
      await loaded.tenants.suspend(tenant, { reason: "left again" });
      return tenant;
    };
    const { code, err } = await run(["erase", tenant], { ask });
    expect([code, err]).toEqual([
      1,
      "keelson: the tenant was resumed in the meantime; suspend it, and run this again",
    ]);
  });

  test("without the option erases the rows of a registry that is no longer used", async () => {
    const { code, out } = await run(["erase", tenant, "--yes"], {}, "plain.mjs");
    expect([code, out[0]]).toEqual([0, "keelson-once: 3 rows erased"]);
  });

  test("an export has the registration", async () => {
    const { code } = await run(["export", tenant, "--out", at("rows.ndjson")]);
    expect(code).toBe(0);
    await access(at("rows.ndjson"));
    const text = await readFile(at("rows.ndjson"), "utf8");
    expect(text).toContain('"createdMs"');
  });
});
