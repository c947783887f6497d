import { expect, test, vi } from "vitest";
import { z } from "zod";
import { access } from "../../base/identity/access.ts";
import { lambdaHttp } from "../../hosts/lambda/index.ts";
import { buildServer, currentContext, defineFeature } from "../../index.ts";
import { startTestApp } from "../../tools/testing/index.ts";

const later = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: async (value: unknown) => ({ value: { ...(value as object), isChecked: true } }),
  },
} as const;

const notes = defineFeature("notes", (r) => {
  r.query("note.later", {
    route: "GET /later/:id",
    access: access.everyone,
    input: later,
    handler: async (_ctx, input) => ({ ...(input as object) }),
  });
  r.query("note.ctx", {
    route: "GET /ctx",
    access: access.authenticated,
    handler: async (ctx) => {
      const { config, query, ...rest } = { ...ctx };
      const unknown = [
        config({ id: "notes:config:none" } as never),
        query("notes.note.none" as never, {} as never),
      ];
      const reasons = (await Promise.allSettled(unknown)).map((outcome) => outcome.status);
      return {
        names: Object.keys(rest).sort(),
        reasons,
        same: Object.is(ctx.db, ctx.db) && Object.is(ctx.request, ctx.request),
      };
    },
  });
  r.query("note.ambient", {
    route: "GET /ambient",
    access: access.authenticated,
    handler: async () => [currentContext(), Object.is(currentContext(), currentContext())],
  });
});

test("waits for a schema that validates asynchronously", async () => {
  const app = await startTestApp(buildServer({ features: [notes] }));
  try {
    expect(await (await app.fetch("/later/7")).json()).toEqual({ id: "7", isChecked: true });
  } finally {
    await app.close();
  }
});

test("a ctx can be spread and destructured: members except the request are own, and functions need no this", async () => {
  const app = await startTestApp(buildServer({ features: [notes] }));
  try {
    const response = await app.fetch("/ctx", { as: { id: "ann", tenantId: "acme" } });

    expect(await response.json()).toEqual({
      names: ["commit", "db", "log", "requestId", "signal", "user"],
      reasons: ["rejected", "rejected"],
      same: true,
    });
  } finally {
    await app.close();
  }
});

test("creates the ambient context once, with the caller and the trace", async () => {
  const app = await startTestApp(buildServer({ features: [notes] }));
  const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
  try {
    const response = await app.fetch("/ambient", {
      as: { id: "ann", tenantId: "acme" },
      headers: { "x-request-id": "r1", traceparent: `00-${traceId}-00f067aa0ba902b7-01` },
    });

    expect(await response.json()).toEqual([
      expect.objectContaining({
        requestId: "r1",
        tenantId: "acme",
        userId: "ann",
        trace: expect.objectContaining({ traceId }),
      }),
      true,
    ]);
  } finally {
    await app.close();
  }
});

const guarded = defineFeature("guarded", (r) => {
  r.write("thing.create", {
    route: "POST /things",
    access: access.roles("editor"),
    input: z.object({ name: z.string() }),
    handler: async (_ctx, { name }) => ({ name }),
  });
});

test("checks the sender before the body: 404, 413 by its declared length, 401, 403, then the body", async () => {
  const secret = "s".repeat(32);
  const app = await startTestApp(
    buildServer({ features: [guarded], auth: { secret }, limits: { bodyBytes: 100 } }),
  );
  vi.stubEnv("KEELSON_AUTH_SECRET", secret);
  try {
    const send = async (path: string, body: string, roles?: string[]) => {
      const as = roles === undefined ? {} : { as: { id: "ann", tenantId: "acme", roles } };
      return (
        await app.fetch(path, {
          method: "POST",
          body,
          headers: { "content-type": "application/json" },
          ...as,
        })
      ).status;
    };
    const [wrong, large] = ["{", `{"name":"${"x".repeat(100)}"}`];

    expect(await send("/nowhere", large)).toBe(404);
    expect(await send("/things", large)).toBe(413);
    expect(await send("/things", wrong)).toBe(401);
    expect(await send("/things", wrong, ["reader"])).toBe(403);
    expect(await send("/things", wrong, ["editor"])).toBe(400);
    expect(await send("/things", '{"name":1}', ["editor"])).toBe(422);
    expect(await send("/things", '{"name":"a"}', ["editor"])).toBe(200);
  } finally {
    vi.unstubAllEnvs();
    await app.close();
  }
});

test("checks the token before the body in Lambda too", async () => {
  const http = lambdaHttp(
    buildServer({
      features: [guarded],
      auth: { secret: "s".repeat(32) },
      limits: { bodyBytes: 100 },
    }),
  );
  const invoke = async (headers: Record<string, string>, body: string) => {
    const event = {
      version: "2.0",
      rawPath: "/things",
      rawQueryString: "",
      headers: { host: "x", "content-type": "application/json", ...headers },
      requestContext: {
        http: { method: "POST", path: "/things", sourceIp: "192.0.2.1" },
        stage: "$default",
      },
      body,
      isBase64Encoded: false,
    };
    return (await http(event as never, {} as never)).statusCode;
  };

  expect(await invoke({ "content-length": "101" }, "{}")).toBe(413);
  expect(await invoke({}, `{"name":"${"x".repeat(100)}"}`)).toBe(401);
});

class Link {
  readonly #url: URL;
  constructor(text: string) {
    this.#url = new URL(text);
  }
  get href() {
    return this.#url.href;
  }
}

const links = defineFeature("links", (r) => {
  r.write("link.create", {
    route: "POST /links/:list",
    access: access.everyone,
    input: z.object({ list: z.string(), at: z.string().transform((text) => new Link(text)) }),
    handler: async (_ctx, { list, at }) => ({ list, at: at.href }),
  });
});

test("tells two writes with one key apart when their schema converts the input to objects", async () => {
  const app = await startTestApp(buildServer({ features: [links] }));
  try {
    const create = async (list: string, at: string) => {
      const response = await app.fetch(`/links/${list}`, {
        method: "POST",
        body: { at },
        headers: { "idempotency-key": "k1" },
      });
      return [await response.json(), response.headers.get("idempotent-replayed")];
    };

    expect(await create("a", "https://one.example/")).toEqual([
      { list: "a", at: "https://one.example/" },
      null,
    ]);
    expect(await create("a", "https://two.example/")).toEqual([
      { list: "a", at: "https://two.example/" },
      null,
    ]);
    expect(await create("b", "https://two.example/")).toEqual([
      { list: "b", at: "https://two.example/" },
      null,
    ]);
    expect(await create("a", "https://one.example/")).toEqual([
      { list: "a", at: "https://one.example/" },
      "true",
    ]);
  } finally {
    await app.close();
  }
});

test("checks a route's query against its output schema, in production only if configured", async () => {
  const counted = defineFeature("counted", (r) => {
    const output = z.object({ n: z.number() });
    r.query("count.show", {
      route: "GET /count",
      access: access.everyone,
      output,
      handler: async () => ({ n: "one" }) as never,
    });
  });
  const statusIn = async (environment: "test" | "production", check?: "development") => {
    const app = await startTestApp(
      buildServer({ features: [counted], environment, ...(check && { output: { check } }) }),
    );
    try {
      return (await app.fetch("/count")).status;
    } finally {
      await app.close();
    }
  };

  expect(await statusIn("test", "development")).toBe(500);
  expect(await statusIn("production")).toBe(500);
  expect(await statusIn("production", "development")).toBe(200);
});
