import { hash, scryptSync } from "node:crypto";
import { access, buildServer, defineFeature, type ResolveCaller } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, afterEach, expect, test } from "vitest";
import { nameOf, writeBlocks } from "./compile.ts";
import { allBlocks, type CodeBlock } from "./markdown.ts";

// The recipes of docs/callers.md, as their readers copy them.

const names = ["session.ts", "basic.ts", "certificate.ts"];
const isRecipe = (block: CodeBlock) =>
  block.document === "docs/callers.md" && names.includes(String(nameOf(block)));
const written = writeBlocks(allBlocks().filter(isRecipe));
afterAll(() => written.remove());

/** The function of a recipe. */
async function recipe<Recipe>(name: string): Promise<Recipe> {
  const file = written.files.find(({ block }) => nameOf(block) === `${name}.ts`);
  const module = await import(/* @vite-ignore */ String(file?.path));
  return module[name];
}

const who = defineFeature("who", (r) => {
  r.query("caller.show", {
    route: "GET /caller",
    access: access.authenticated,
    handler: async ({ user }) => user,
  });
});

let app: TestApp | undefined;
afterEach(() => app?.close());
async function asking(resolve: ResolveCaller) {
  const started = await startTestApp(buildServer({ features: [who], auth: { resolve } }));
  app = started;
  return async (headers: Record<string, string>) => {
    const response = await started.fetch("/caller", { headers });
    return { status: response.status, body: await response.json() };
  };
}

const caller = { id: "ann", tenantId: "acme", roles: ["editor"] };
const user = { ...caller, kind: "user" };

test("a session cookie identifies its user until the session ends", async () => {
  const session =
    await recipe<(load: (hash: string) => Promise<unknown>) => ResolveCaller>("session");
  const sessions = new Map([
    [hash("sha256", "s-1", "base64url"), { ...caller, endsAt: Date.now() + 3_600_000 }],
    [hash("sha256", "s-2", "base64url"), { ...caller, endsAt: Date.now() - 1 }],
  ]);
  const ask = await asking(session(async (id) => sessions.get(id)));
  expect(await ask({ cookie: "a=b; __Host-session=s-1" })).toEqual({ status: 200, body: user });
  for (const cookie of ["__Host-session=s-2", "__Host-session=s-3", "session=s-1"])
    expect((await ask({ cookie })).status).toBe(401);
});

test("Basic authentication takes the right password of a known name", async () => {
  const basic = await recipe<(find: (name: string) => Promise<unknown>) => ResolveCaller>("basic");
  const { tenantId, roles } = caller;
  const account = { tenantId, roles, salt: "salt", hash: scryptSync("a:b", "salt", 32) };
  const ask = await asking(basic(async (name) => (name === "ann" ? account : undefined)));
  const header = (text: string) => ({
    authorization: `Basic ${Buffer.from(text).toString("base64")}`,
  });
  expect(await ask(header("ann:a:b"))).toEqual({ status: 200, body: user });
  for (const text of ["ann:a", "ann:", "ann", "bob:a:b", ":", ""])
    expect((await ask(header(text))).status).toBe(401);
  expect((await ask({})).status).toBe(401);
});

test("a client certificate identifies the caller that has its subject", async () => {
  const certificate =
    await recipe<(callers: ReadonlyMap<string, typeof caller>) => ResolveCaller>("certificate");
  const ask = await asking(certificate(new Map([["CN=scanner,O=Acme", caller]])));
  const subject = "x-amzn-mtls-clientcert-subject";
  expect(await ask({ [subject]: "CN=scanner,O=Acme" })).toEqual({ status: 200, body: user });
  expect((await ask({ [subject]: "CN=other" })).status).toBe(401);
  expect((await ask({})).status).toBe(401);
});
