// Routes that take files, on both hosts.
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { hostless } from "../../../test/fixtures/hostless.ts";
import { access } from "../../base/identity/access.ts";
import { lambdaHttp } from "../../hosts/lambda/index.ts";
import { hmac } from "../../parts/webhooks/index.ts";
import { lambdaEvent, startTestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import { buildServer } from "../server/server.ts";

let runs = 0;
const list = <Part extends z.ZodType>(schema: Part) => z.union([schema, z.array(schema)]);
const scans = defineFeature("scans", (r) => {
  const upload = r.write("scan.upload", {
    route: "POST /scans/:folder",
    access: access.authenticated,
    body: "multipart",
    limits: { bodyBytes: 2_000 },
    input: z.object({
      folder: z.string(),
      pages: z.coerce.number(),
      scan: z.file().max(1_000),
      more: list(z.file()).optional(),
    }),
    handler: async (ctx, { folder, pages, scan, more = [] }) => {
      runs += 1;
      const files = await Promise.all(
        [scan, more].flat().map(async (file) => [file.name, file.type, await file.text()]),
      );
      return { folder, pages, files, raw: ctx.request?.rawBody.byteLength !== 0 };
    },
  });
  r.write("scan.open", {
    route: "POST /open",
    access: access.everyone,
    body: "multipart",
    handler: async (_ctx, input) => Object.keys(input as object),
  });
  r.webhook("mail.received", {
    route: "POST /mails",
    body: "multipart",
    input: z.object({ account: z.string(), attachment: z.file() }),
    verify: hmac({ secret: "s".repeat(32), header: "x-signature" }),
    tenant: ({ account }) => account,
    handler: async (_ctx, { attachment }) => ({ text: await attachment.text() }),
  });
  return { upload };
});
const server = buildServer({ features: [scans] });
const ann = { id: "ann", tenantId: "acme", roles: [] };

async function started() {
  runs = 0;
  const app = await startTestApp(server);
  onTestFinished(() => app.close());
  return app;
}

function formOf(content = "scanned", name = "a.txt", type = "text/plain") {
  const form = new FormData();
  form.append("pages", "3");
  form.append("scan", new File([content], name, { type }));
  return form;
}

test("a container gives files to the handler, and names invalid fields", async () => {
  const app = await started();
  const send = (body: unknown, headers = {}) => app.fetch("/scans/old", { body, headers, as: ann });
  const form = formOf();
  form.append("more", new File(["1"], "1.txt"));
  form.append("more", new File(["2"], "2.txt"));

  const answer = await send(form);
  expect([answer.status, await answer.json()]).toEqual([
    200,
    {
      folder: "old",
      pages: 3,
      files: [
        ["a.txt", "text/plain", "scanned"],
        ["1.txt", "application/octet-stream", "1"],
        ["2.txt", "application/octet-stream", "2"],
      ],
      raw: true,
    },
  ]);
  const missing = new FormData();
  missing.append("scan", "no file");
  expect(await (await send(missing)).json()).toMatchObject({
    error: "validation_error",
    fields: [{ field: "pages" }, { field: "scan" }],
  });
  const twice = formOf();
  twice.append("folder", "new");
  expect(await (await send(twice)).json()).toMatchObject({
    fields: [{ field: "folder", error: "is given twice: in path, query or body" }],
  });
  expect((await send({ pages: 3 })).status).toBe(415);
  const broken = await send("--B", { "content-type": "multipart/form-data; boundary=B" });
  expect([broken.status, await broken.json()]).toMatchObject([400, { error: "malformed_request" }]);
  expect((await send(formOf("x".repeat(1_001)))).status).toBe(422);
  expect((await send(formOf("x".repeat(2_000)))).status).toBe(413);
  expect((await app.fetch("/scans/old", { body: formOf() })).status).toBe(401);
});

test("a retry with another boundary is the same request, and another file, name or type is not", async () => {
  const app = await started();
  const send = async (body: FormData) => {
    const headers = { "idempotency-key": "k1" };
    const answer = await app.fetch("/scans/old", { body, headers, as: ann });
    return [answer.status, answer.headers.get("idempotent-replayed")];
  };
  // fetch makes a random boundary for each.
  expect(await send(formOf())).toEqual([200, null]);
  expect(await send(formOf())).toEqual([200, "true"]);
  for (const other of [
    formOf("changed"),
    formOf("scanned", "b.txt"),
    formOf("scanned", "a.txt", "text/html"),
  ])
    expect(await send(other)).toEqual([422, null]);
  expect(runs).toBe(1);
});

test("a hook that replaces a file replaces it for the handler", async () => {
  const hooked = defineFeature("hooked", (r) =>
    r.hook(scans.upload, {
      before: (_ctx, input) => ({
        ...input,
        scan: new File(["redacted"], "a.txt", { type: "text/plain" }),
      }),
    }),
  );
  const app = await startTestApp(buildServer({ features: [scans, hooked] }));
  onTestFinished(() => app.close());
  const answer = await app.fetch("/scans/old", { body: formOf("original"), as: ann });
  expect(await answer.json()).toMatchObject({ files: [["a.txt", "text/plain", "redacted"]] });
});

test.each(["httpApi", "restApi", "functionUrl", "loadBalancer"] as const)(
  "a function behind %s takes files in base64",
  async (front) => {
    const http = lambdaHttp(server);
    const request = new Response(formOf("\u00ff\u0000", "a.bin", "application/pdf"));
    const event = (path: string, body: Uint8Array) =>
      lambdaEvent(front, {
        method: "POST",
        path,
        headers: { "content-type": String(request.headers.get("content-type")) },
        body,
      });
    const bytes = new Uint8Array(await request.arrayBuffer());
    const sent = async (path: string, body: Uint8Array) => {
      const { statusCode, body: text } = await http(event(path, body) as never, {} as never);
      return [statusCode, JSON.parse(String(text))];
    };
    expect(await sent("/open", bytes)).toEqual([200, ["pages", "scan"]]);
    expect(await sent("/open", bytes.subarray(0, -8))).toMatchObject([
      400,
      { error: "malformed_request" },
    ]);
    expect(await sent("/open", new Uint8Array(0))).toEqual([200, []]);
  },
);

test("a form that a middleware has parsed is the input, whose bytes are gone", async () => {
  const { ask } = hostless(server);
  const { status, json } = await ask("POST /open", {
    headers: { "content-type": "multipart/form-data; boundary=B" },
    readForm: async (limitBytes) => ({ limitBytes }),
    readBody: () => expect.unreachable("the body was read"),
  });
  expect([status, json()]).toEqual([200, ["limitBytes"]]);
});

test("a webhook takes files, behind a signature of the whole body", async () => {
  const app = await started();
  const form = new FormData();
  form.append("account", "acme");
  form.append("attachment", new File(["attached"], "a.txt"));
  const request = new Response(form);
  const body = Buffer.from(await request.arrayBuffer());
  const { createHmac } = await import("node:crypto");
  const send = async (bytes: Buffer) => {
    const answer = await app.fetch("/mails", {
      body: bytes,
      headers: {
        "content-type": String(request.headers.get("content-type")),
        "x-signature": createHmac("sha256", "s".repeat(32)).update(body).digest("hex"),
      },
    });
    return [answer.status, await answer.json()];
  };
  expect(await send(body)).toEqual([200, { text: "attached" }]);
  const changed = Buffer.from(body.toString().replace("attached", "replaced"));
  expect(await send(changed)).toMatchObject([401, { error: "signature_invalid" }]);
});
