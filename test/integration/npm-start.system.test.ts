import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type StartedProcess, signalGroup, startProcess } from "../support/process.ts";

const run = promisify(execFile);
const directory = mkdtempSync(join(tmpdir(), "keelson-start-"));
const env = {
  PORT: "0",
  LOG_FORMAT: "json",
  NODE_ENV: undefined,
  KEELSON_DIRECTORY: directory,
  KEELSON_AUTH_SECRET: undefined,
};

const own = { ...process.env, ...env } as NodeJS.ProcessEnv; // undefined is unset, as for any child
const developmentEnv = "--env-file=examples/files/development.env";

/** What the command prints in a process of its own, which succeeds. */
async function keelson(...parameters: readonly string[]): Promise<string> {
  return (
    await run(process.execPath, [developmentEnv, "src/tools/cli/main.ts", ...parameters], {
      env: own,
    })
  ).stdout;
}

let started: StartedProcess;
let tokens: Record<"ann" | "gil", string>;

beforeAll(async () => {
  started = await startProcess("npm", ["start"], env);
  tokens = { ann: await token("acme", "ann", "admin"), gil: await token("globex", "gil") };
});

afterAll(async () => {
  signalGroup(started, "SIGKILL");
  await started.exited;
  rmSync(directory, { recursive: true, force: true, maxRetries: 20 });
});

test("the boot log names the active adapters", () => {
  expect(started.logs).toContainEqual(
    expect.objectContaining({
      level: "info",
      msg: "server.started",
      environment: "development",
      adapters: expect.objectContaining({
        dynamodb: expect.stringContaining("embedded"),
        sqs: expect.stringContaining("embedded"),
      }),
    }),
  );
});

test("a file is created, listed, read and deleted by its own tenant only", async () => {
  const created = await send("POST", "/files", {
    as: "ann",
    body: { name: "report.pdf", sizeMb: 3 },
  });
  const { id } = (await created.json()) as { id: string };
  expect(created.status).toBe(201);

  expect(await json(send("GET", `/files/${id}`, { as: "ann" }))).toEqual({
    id,
    name: "report.pdf",
    sizeMb: 3,
  });
  expect(await json(send("GET", "/files?order=name", { as: "ann" }))).toEqual({
    items: [{ id, name: "report.pdf", sizeMb: 3 }],
  });
  expect((await send("GET", `/files/${id}`, { as: "gil" })).status).toBe(404);
  expect(await json(send("GET", "/files", { as: "gil" }))).toEqual({ items: [] });
  expect((await send("DELETE", `/files/${id}`, { as: "gil" })).status).toBe(404);
  expect((await send("DELETE", `/files/${id}`, { as: "ann" })).status).toBe(204);
  expect((await send("DELETE", `/files/${id}`, { as: "ann" })).status).toBe(404);
});

test("a second terminal shows the tree of a request, confirmed by the tables", async () => {
  const headers = { "x-request-id": "traced-1" };
  expect(
    (await send("POST", "/files", { as: "ann", body: { name: "b.txt", sizeMb: 1 }, headers }))
      .status,
  ).toBe(201);
  const trace = async (...parameters: readonly string[]) =>
    (await run("npm", ["run", "--silent", "trace", "--", ...parameters], { env: own })).stdout;
  // The answer waits for none of what follows.
  await expect.poll(() => trace("traced-1")).toMatch(/\n\nNothing is stuck\.\n$/);
  const [whole, last] = [
    await trace("traced-1"),
    JSON.parse(await trace("--json")) as { readonly id: string; readonly tables: boolean },
  ];
  expect(whole).toMatch(/^request traced-1, of acme, at .*\n\nPOST \/files → 201 +done /);
  expect(whole).toMatch(/└─ delivery log +done /);
  expect(last).toMatchObject({ id: "traced-1", tables: true });
});

test("commands in a second terminal work on the data of the running server, which keeps running", async () => {
  expect(
    (await send("POST", "/files", { as: "ann", body: { name: "c.txt", sizeMb: 1 } })).status,
  ).toBe(201);
  const module = "examples/files/server.ts";
  const exported = join(directory, "acme.jsonl");
  const ring = ["--parameter", "/files/key-ring"];
  expect(await keelson("tenant", "export", module, "acme", "--out", exported)).toContain("acme");
  expect(readFileSync(exported, "utf8")).toContain("c.txt");
  expect(await keelson("tenant", "erase", module, "umbrella", "--yes")).toContain("umbrella");
  expect(await keelson("outbox", "list")).toBe("");
  await keelson("steps", "list", module);
  await keelson("projection", "status", module);
  expect(await keelson("key-ring", "create", ...ring, "--key", "first")).toContain("first");
  expect(await keelson("key-ring", "list", ...ring)).toContain("first");
  expect(await keelson("doctor", module)).toMatch(/table keelson-files: active[\s\S]* 0 fail,/);
  await keelson("contract", "check", module, "--file", "examples/files/contract.json", "--stored");
  expect((await send("GET", "/files", { as: "ann" })).status).toBe(200);
});

test("a script in a second terminal runs on the data of the running server, which takes over what it enqueues", async () => {
  const script = join(directory, "script.ts");
  writeFileSync(
    script,
    `import { server } from ${JSON.stringify(pathToFileURL(join(import.meta.dirname, "../../examples/files/server.ts")).href)};
    try {
      await server.run({ reason: "a look", tenantId: "acme" }, async (ctx) => console.log("ran for", ctx.user?.tenantId));
    } finally {
      await server.close();
    }`,
  );
  const { stdout } = await run(process.execPath, [developmentEnv, script], { env: own });
  expect(stdout).toMatch(/^ran for acme$/m);
  expect(stdout).toContain("embedded.attached");
  expect((await send("GET", "/files", { as: "ann" })).status).toBe(200);
});

test("a file above max-upload-size-mb is a 422 that names the field", async () => {
  const response = await send("POST", "/files", { as: "ann", body: { name: "a", sizeMb: 11 } });

  expect(response.status).toBe(422);
  expect(await response.json()).toMatchObject({
    error: "validation_error",
    fields: [{ field: "sizeMb", error: "must be at most 10" }],
  });
});

test("the quota depends on the tenant's plan", async () => {
  expect(await json(send("GET", "/files/quota", { as: "ann" }))).toMatchObject({
    storageQuotaMb: 5000,
  });
  expect(await json(send("GET", "/files/quota", { as: "gil" }))).toMatchObject({
    storageQuotaMb: 100,
  });
});

test("a download URL is presigned for the requested seconds, clamped to the bounds", async () => {
  const { url, expiresSeconds } = await json(
    send("GET", "/files/7/download-url?expiresSeconds=999999999", { as: "ann" }),
  );

  expect(expiresSeconds).toBe(604_800);
  expect(new URL(url).searchParams.get("X-Amz-Expires")).toBe("604800");
  expect(started.logs).toContainEqual(
    expect.objectContaining({
      level: "warn",
      msg: "config.per_request_clamped",
      original: 999_999_999,
      clamped: 604_800,
      max: 604_800,
      tenantId: "acme",
    }),
  );
});

test.each([
  ["no token", "GET", "/files", {}, 401, "unauthenticated"],
  [
    "a token that is none",
    "GET",
    "/files",
    { headers: { authorization: "Bearer x.y.z" } },
    401,
    "unauthenticated",
  ],
  ["a route that is not there", "GET", "/nowhere", { as: "ann" }, 404, "not_found"],
  ["a method that is not there", "PUT", "/files", { as: "ann" }, 405, "method_not_allowed"],
  [
    "a body that is no JSON",
    "POST",
    "/files",
    { as: "ann", raw: "{", headers: { "content-type": "application/json" } },
    400,
    "malformed_request",
  ],
  [
    "a body of another type",
    "POST",
    "/files",
    { as: "ann", raw: "<a/>", headers: { "content-type": "text/xml" } },
    415,
    "unsupported_media_type",
  ],
  [
    "a body over 1 MiB",
    "POST",
    "/files",
    { as: "ann", raw: "x".repeat(1_048_577), headers: { "content-type": "application/json" } },
    413,
    "payload_too_large",
  ],
  [
    "input that does not fit",
    "POST",
    "/files",
    { as: "ann", body: { name: "", sizeMb: "1" } },
    422,
    "validation_error",
  ],
  ["malformed percent-encoding", "GET", "/files/%zz", { as: "ann" }, 400, "malformed_request"],
] as const)(
  "%s is answered in the uniform body",
  async (_name, method, path, options, status, error) => {
    const response = await send(method, path, options);

    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({
      error,
      message: expect.any(String),
      requestId: response.headers.get("x-request-id"),
    });
  },
);

test("input that is not HTTP is refused in the uniform body, with a request ID", async () => {
  const answer = await new Promise<string>((resolve, reject) => {
    const socket = connect(started.port, "127.0.0.1", () => socket.write("nonsense\r\n\r\n"));
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString();
    });
    socket.on("close", () => resolve(text));
    socket.on("error", reject);
  });

  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  expect(answer).toMatch(/x-request-id: [0-9a-f-]{36}/i);
  expect(answer).toContain('"error":"malformed_request"');
});

test("a second server on the same data shares it, and leaves it to the first when it ends", async () => {
  const second = await startProcess("npm", ["start"], env);
  expect(second.logs).toContainEqual(expect.objectContaining({ msg: "embedded.attached" }));
  const { id } = await json(
    send("POST", "/files", { as: "ann", body: { name: "d.txt", sizeMb: 1 } }),
  );
  const read = await fetch(`http://127.0.0.1:${second.port}/files/${id}`, {
    headers: { authorization: `Bearer ${tokens.ann}` },
  });
  expect(await read.json()).toMatchObject({ name: "d.txt" });
  signalGroup(second, "SIGKILL");
  await second.exited;
  expect((await send("GET", `/files/${id}`, { as: "ann" })).status).toBe(200);
});

test("SIGTERM fails readiness, finishes requests in flight, and ends the process", async () => {
  started.child.kill("SIGTERM"); // npm itself: it has to hand it on
  await expect.poll(async () => (await send("GET", "/health/ready", {})).status).toBe(503);
  expect((await send("GET", "/health/live", {})).status).toBe(200);
  expect((await send("GET", "/files", { as: "ann" })).status).toBe(200);

  await expect
    .poll(() => started.logs)
    .toContainEqual(expect.objectContaining({ msg: "shutdown.completed", clean: true }));
});

interface SendOptions {
  readonly as?: "ann" | "gil";
  readonly body?: unknown;
  readonly raw?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

function send(
  method: string,
  path: string,
  { as, body, raw, headers }: SendOptions,
): Promise<Response> {
  return fetch(`http://127.0.0.1:${started.port}${path}`, {
    method,
    headers: {
      ...(as === undefined ? {} : { authorization: `Bearer ${tokens[as]}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(raw === undefined && body === undefined ? {} : { body: raw ?? JSON.stringify(body) }),
  });
}

// biome-ignore lint/suspicious/noExplicitAny: each test looks at the members it promises
async function json(response: Promise<Response>): Promise<any> {
  return (await response).json();
}

async function token(tenant: string, user: string, roles = ""): Promise<string> {
  const parameters = [
    "run",
    "--silent",
    "token",
    "--",
    "--tenant",
    tenant,
    "--user",
    user,
    ...(roles === "" ? [] : ["--roles", roles]),
  ];
  const { stdout } = await run("npm", parameters, {
    env: { ...process.env, ...env } as NodeJS.ProcessEnv,
  });
  return stdout.trim();
}
