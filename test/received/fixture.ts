import { defineFeature, type PipelineContext, type ReceivedEvent } from "keelson";
import { z } from "zod";

const stored = z.object({ bucket: z.string(), key: z.string().min(1) });

export type Stored = z.output<typeof stored>;

/** The behaviour of the handlers, and their runs so far. */
export const world = {
  handle: async (_ctx: PipelineContext, _event: ReceivedEvent): Promise<unknown> => undefined,
  id: (event: ReceivedEvent<{ readonly reference: unknown }>): unknown => event.detail.reference,
  tenant: (event: ReceivedEvent<Stored>): unknown => event.detail.key.split("/")[0] || undefined,
  runs: [] as Run[],
};

interface Run {
  readonly by: string;
  readonly id: string;
  readonly tenantId: string | undefined;
  readonly event: ReceivedEvent | undefined;
}

const handlerOf = (by: string) => async (ctx: PipelineContext, event: ReceivedEvent) => {
  world.runs.push({ by, id: event.id, tenantId: ctx.user.tenantId, event });
  return world.handle(ctx, event);
};

/** Two receivers of one event, one from another bus, and a consumer and a job of its own. */
export const uploads = defineFeature("uploads", (r) => {
  const table = r.table("uploads", { partitionKey: "pk", sortKey: "sk", tenant: true });
  const noted = r.event("upload.noted", z.object({ key: z.string() }));
  const scan = r.job("upload.scan", {
    input: z.object({ key: z.string() }),
    handler: async (ctx, { key }) =>
      void world.runs.push({ by: "scan", id: key, tenantId: ctx.user.tenantId, event: undefined }),
  });
  r.on(noted, {
    name: "count",
    handler: async (ctx, { payload }) =>
      void world.runs.push({
        ...{ by: "count", id: payload.key },
        ...{ tenantId: ctx.user.tenantId, event: undefined },
      }),
  });
  const bucket = { source: "aws.s3", detailType: "Object Created", input: stored } as const;
  r.receive("upload.stored", {
    ...bucket,
    tenant: (event) => world.tenant(event) as string,
    handler: handlerOf("stored"),
  });
  r.receive("upload.audited", { ...bucket, handler: handlerOf("audited") });
  const daily = r.rateLimit("daily", { per: "all", requests: 1, window: "minute" });
  r.receive("import.asked", {
    ...{ source: "imports", detailType: "Import Asked", input: z.object({ name: z.string() }) },
    handler: async (ctx, event) => {
      await ctx.rateLimit.take(daily);
      return handlerOf("asked")(ctx, event);
    },
  });
  r.receive("payment.settled", {
    source: "billing",
    detailType: "Payment Settled",
    bus: "partners",
    input: z.object({ reference: z.unknown() }).meta({ id: "Settled" }),
    id: (event) => world.id(event) as string,
    handler: handlerOf("settled"),
  });
  return { table, noted, scan };
});

let count = 0;

/** An event of S3 as EventBridge puts it into a queue, with an ID of its own. */
export function storedEvent(key: string, more: object = {}) {
  count += 1;
  return {
    version: "0",
    id: `17793124-05d4-b198-2fde-${String(count).padStart(12, "0")}`,
    "detail-type": "Object Created",
    source: "aws.s3",
    account: "111122223333",
    time: "2026-11-12T00:00:00Z",
    region: "eu-west-1",
    resources: ["arn:aws:s3:::uploads"],
    detail: { bucket: "uploads", key },
    ...more,
  };
}
