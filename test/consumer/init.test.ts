import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { beforeAll, expect, inject, test } from "vitest";
import { type Project, projectIn } from "./support/project.ts";

let project: Project;
beforeAll(async () => {
  const { tarball, projects } = inject("consumer");
  const unpacked = projectIn(mkdtempSync(join(projects, "init-")));
  const made = [
    await unpacked.run("tar", ["-xzf", tarball]),
    // Of the package alone: making a project needs none of its dependencies.
    await unpacked.run("node", [
      "package/dist/tools/cli/main.js",
      "init",
      "my-app",
      "--yes",
      "--no-install",
    ]),
  ];
  expect(made.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
    made.map(() => ({ code: 0, stderr: "" })),
  );
  project = projectIn(join(unpacked.directory, "my-app"));
  // This version is on no registry.
  const args = ["install", `keelson@file:${tarball}`, "--no-audit", "--no-fund"];
  const { code, stdout, stderr } = await project.run("npm", args, { timeoutMs: 540_000 });
  if (code !== 0) throw new Error(`npm install ended with ${code}:\n${stdout}\n${stderr}`);
});

const succeeds = async (command: string, args: readonly string[]) => {
  const { code, stdout, stderr } = await project.run(command, args);
  expect({ code, output: code === 0 ? "" : stdout + stderr }).toEqual({ code: 0, output: "" });
  return stdout;
};

test("the project that init makes passes its own tests and type check", async () => {
  expect(stripVTControlCharacters(await succeeds("npm", ["test"]))).toMatch(/Tests\s+3 passed/);
  await succeeds("npm", ["run", "check"]);
});

test("its container answers the route, to the token that its command prints", async () => {
  const container = project.start("npm", ["start"], { env: { PORT: "0", NO_COLOR: "1" } });
  const [, port] = await container.printed(/server\.started.*\bport=(\d+)/);
  const token = (await succeeds("npm", ["run", "--silent", "token"])).trim();
  const notes = `http://127.0.0.1:${port}/notes`;
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };

  const created = await fetch(notes, {
    method: "POST",
    headers,
    body: JSON.stringify({ text: "milk" }),
  });
  expect([created.status, await created.json()]).toEqual([
    201,
    { id: expect.any(String), text: "milk" },
  ]);
  const shown = await fetch(new URL(String(created.headers.get("location")), notes), { headers });
  expect([shown.status, await shown.json()]).toEqual([
    200,
    expect.objectContaining({ text: "milk" }),
  ]);
  expect((await fetch(notes, { method: "POST", body: "{}" })).status).toBe(401);
  await container.stop();
});

test("its bundle is a Lambda function that answers the same route", async () => {
  await succeeds("npm", ["run", "bundle"]);
  project.write("invoke.mjs", invoke);
  const [status, body] = JSON.parse(
    (await succeeds("node", ["invoke.mjs"])).trim().split("\n").at(-1) ?? "",
  );

  expect([status, JSON.parse(body)]).toEqual([201, { id: expect.any(String), text: "milk" }]);
});

/** Invokes what was bundled, on the tables of an embedded stack. */
const invoke = `
import { startTestApp } from "keelson/testing";
import { server } from "./src/server.ts";

const app = await startTestApp(server);
Object.assign(process.env, app.env);
const { http } = await import("./dist/lambda.mjs");
const authorizer = { lambda: { sub: "ann", tenantId: "acme" } };
const event = {
  version: "2.0",
  rawPath: "/notes",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ text: "milk" }),
  requestContext: { http: { method: "POST" }, authorizer },
};
const { statusCode, body } = await http(event, { getRemainingTimeInMillis: () => 30_000 });
console.log(JSON.stringify([statusCode, body]));
await app.close();
process.exit(0);
`;
