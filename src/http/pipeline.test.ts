import { expect, test } from "vitest";
import { access } from "../identity/access.ts";
import { buildServer, currentContext, defineFeature } from "../index.ts";
import { startTestApp } from "../testing/index.ts";

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
      const unknown = [config({ id: "notes:config:none" } as never), query("notes.note.none" as never, {} as never)];
      const reasons = (await Promise.allSettled(unknown)).map((outcome) => outcome.status);
      return { names: Object.keys(rest).sort(), reasons, same: Object.is(ctx.db, ctx.db) && Object.is(ctx.request, ctx.request) };
    },
  });
  r.query("note.ambient", {
    route: "GET /ambient",
    access: access.authenticated,
    handler: async () => [currentContext(), Object.is(currentContext(), currentContext())],
  });
});

test("a schema that validates later is waited for", async () => {
  const app = await startTestApp(buildServer({ features: [notes] }));
  try {
    expect(await (await app.fetch("/later/7")).json()).toEqual({ id: "7", isChecked: true });
  } finally {
    await app.close();
  }
});

test("a ctx can be spread and taken apart: all members but the request are its own, its functions need no this", async () => {
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

test("the ambient context is made once, with the caller and the trace", async () => {
  const app = await startTestApp(buildServer({ features: [notes] }));
  const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
  try {
    const response = await app.fetch("/ambient", {
      as: { id: "ann", tenantId: "acme" },
      headers: { "x-request-id": "r1", traceparent: `00-${traceId}-00f067aa0ba902b7-01` },
    });

    expect(await response.json()).toEqual([
      expect.objectContaining({ requestId: "r1", tenantId: "acme", userId: "ann", trace: expect.objectContaining({ traceId }) }),
      true,
    ]);
  } finally {
    await app.close();
  }
});
