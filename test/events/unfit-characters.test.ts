import { GetCommand, PutCommand, ScanCommand } from "@aws-sdk/lib-dynamodb";
import { access, buildServer, defineFeature } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";

const scrawl = z.record(z.string(), z.string());
const asked = z.object({
  by: z.enum(["event", "kept", "job", "later", "delivery"]),
  payload: scrawl,
  times: z.number().default(1),
});

declare module "keelson" {
  interface Events {
    "scrawl.written": z.output<typeof scrawl>;
    "scrawl.kept": z.output<typeof scrawl>;
  }
  interface Channels {
    easel: z.input<typeof scrawl>;
  }
  interface Jobs {
    "scrawls.scrawl.read": z.input<typeof scrawl>;
  }
}

/** Characters that JSON leaves as they are and SQS refuses, half a surrogate, and what looks like their escapes. */
const unfit = {
  text: "a\uFFFEb\uFFFFc\ud800d\u0000e",
  "\uFFFF\udfff": String.raw`\uFFFE \ud800 \\`,
  fit: "\u{1FFFE}\u{10FFFF}\u2028",
};

interface Got {
  readonly by: string;
  readonly tenantId: string | undefined;
  readonly payload: unknown;
}

let got: Got[] = [];
const scrawls = defineFeature("scrawls", (r) => {
  r.event("scrawl.written", scrawl);
  r.event("scrawl.kept", scrawl, { keepDays: 3 });
  r.on("scrawl.written", {
    name: "note",
    handler: (ctx, { payload }) => {
      got.push({ by: "event", tenantId: ctx.user.tenantId, payload });
    },
  });
  r.job("scrawl.read", {
    input: scrawl,
    handler: (ctx, payload) => {
      got.push({ by: "job", tenantId: ctx.user.tenantId, payload });
    },
  });
  r.channel("easel", {
    input: scrawl,
    send: (ctx, payload) => {
      got.push({ by: "delivery", tenantId: ctx.user.tenantId, payload });
    },
  });
  r.query("scrawl.list", {
    route: "GET /scrawls",
    access: access.tenant,
    handler: async (ctx) => {
      const kept = [];
      for await (const { payload } of ctx.events("scrawl.kept")) kept.push(payload);
      return { kept };
    },
  });
  r.write("scrawl.write", {
    route: "POST /scrawls",
    access: access.tenant,
    input: asked,
    handler: async (ctx, { by, payload, times }) => {
      for (let time = 0; time < times; time += 1) {
        if (by === "event") await ctx.publish("scrawl.written", payload);
        else if (by === "kept") await ctx.publish("scrawl.kept", payload);
        else if (by === "delivery") await ctx.delivery.send("easel", payload);
        else
          await ctx.enqueue(
            "scrawls.scrawl.read",
            payload,
            by === "later" ? { delaySeconds: 60 } : {},
          );
      }
      return { done: true };
    },
  });
});

let app: TestApp;
beforeAll(async () => {
  const options = { messages: { proof: "require" }, keyRing: { parameter: "/ring" } } as const;
  app = await startTestApp(buildServer({ features: [scrawls], ...options }), {
    environment: "development",
  });
});
afterAll(() => app.close());
beforeEach(() => {
  got = [];
});

const [ann, eve] = [
  { id: "ann", tenantId: "acme" },
  { id: "eve", tenantId: "evil" },
];
const outbox = () => app.env["KEELSON_TABLE_OUTBOX"] ?? "keelson-outbox";
const write = async (as: typeof ann, body: z.input<typeof asked>) => {
  expect((await app.fetch("/scrawls", { as, body })).status).toBe(200);
};
interface Row {
  readonly pk: string;
  readonly sk: string;
  readonly envelope: string;
  readonly tenantId: string;
}
const rows = async () => {
  const { db } = await app.ctx(ann);
  return ((await db.send(new ScanCommand({ TableName: outbox(), ConsistentRead: true }))).Items ??
    []) as unknown as Row[]; // safe: what the table holds
};

test.each(["event", "job", "delivery"] as const)(
  "characters that no queue accepts arrive unchanged: %s",
  async (by) => {
    await write(eve, { by, payload: unfit });
    await app.settled();
    expect(got).toEqual([{ by, tenantId: "evil", payload: unfit }]);
  },
);

test("recorded events and jobs with such characters keep their payloads, and a recorded event can be delivered again", async () => {
  const payload = { ...unfit, recorded: "yes" };
  await write(eve, { by: "event", payload });
  await write(eve, { by: "job", payload });
  await app.settled();
  const event = app.events.at(-1);
  expect(event).toMatchObject({ payload: { ...payload, requestId: event?.origRequestId } });
  expect(app.jobs.at(-1)).toMatchObject({ payload });
  expect(event && (await app.deliver(event))).toBe("skipped");
});

test("a kept event with such characters is read as it was published", async () => {
  await write(eve, { by: "kept", payload: unfit });
  const response = await app.fetch("/scrawls", { as: eve });
  expect(await response.json()).toEqual({ kept: [unfit] });
  await app.settled();
});

test("a tenant's delayed jobs with such characters run, and so do those of other tenants", async () => {
  await write(eve, { by: "later", payload: unfit, times: 75 });
  await write(eve, { by: "later", payload: unfit, times: 75 });
  await write(ann, { by: "later", payload: { text: "mine" } });
  app.clock.advance(60_000);
  await app.settled();
  expect(got.filter(({ tenantId }) => tenantId === "evil")).toHaveLength(150);
  expect(got).toContainEqual({ by: "job", tenantId: "evil", payload: unfit });
  expect(got).toContainEqual({ by: "job", tenantId: "acme", payload: { text: "mine" } });
  expect(await rows()).toEqual([]);
});

test("a page of rows that the queue never accepts is set aside, and the job behind it runs", async () => {
  await write(ann, { by: "later", payload: { text: "behind" } });
  const [mine] = (await rows()) as [Row]; // safe: it is the only one
  const { db } = await app.ctx(eve);
  for (let number = 0; number < 150; number += 1) {
    const eventId = `00000000-0000-8000-8000-${String(number).padStart(12, "0")}`;
    const envelope = mine.envelope.replace("behind", "\uFFFE");
    const Item = {
      ...mine,
      tenantId: "evil",
      eventId,
      envelope,
      sk: `${"0".repeat(15)}#${eventId}`,
    };
    await db.send(new PutCommand({ TableName: outbox(), Item }));
  }
  app.clock.advance(60_000);
  await expect(app.settled()).rejects.toThrow("150 events were set aside");
  expect(got).toEqual([{ by: "job", tenantId: "acme", payload: { text: "behind" } }]);
  const lines = app.logs.filter(({ msg }) => msg === "job.set_aside");
  expect(lines).toHaveLength(150);
  expect(lines[0]).toMatchObject({
    level: "error",
    job: "scrawls.scrawl.read",
    reason: expect.stringContaining("Invalid characters"),
  });
  const { sk } = mine;
  expect(
    (await db.send(new GetCommand({ TableName: outbox(), Key: { pk: mine.pk, sk } }))).Item,
  ).toBeUndefined();
});
