import {
  type EventOf,
  type FeatureBuilder,
  type KeptEvent,
  PermanentError,
  type PipelineContext,
  type Projection,
  type ReceivedEvent,
  type SharedEvent,
} from "keelson";
import { describe, expectTypeOf, test } from "vitest";
import { z } from "zod";

const parcel = z.object({ id: z.string(), grams: z.number() });
const label = z.object({ parcel: z.string(), copies: z.string().transform(Number) });
const letter = z.object({ to: z.string(), at: z.string().transform((text) => new Date(text)) });

declare module "keelson" {
  interface Events {
    "typed-parcel.packed": z.output<typeof parcel>;
    "typed-parcel.lost": { id: string };
  }
  interface Jobs {
    "typed.parcel.label": z.input<typeof label>;
    "typed.parcel.weigh": { id: string };
  }
  interface Channels {
    "typed-post": z.input<typeof letter>;
  }
}

const r = {} as FeatureBuilder;
const ctx = {} as PipelineContext;

describe("r.event", () => {
  test("accepts a schema whose output is the declared payload, regardless of its input", () => {
    r.event("typed-parcel.packed", parcel);
    r.event(
      "typed-parcel.packed",
      z.object({ id: z.string(), grams: z.string().transform(Number) }),
    );
    r.event("typed-parcel.packed", parcel.extend({ colour: z.string() }));
    r.event("typed-parcel.undeclared", z.object({ any: z.boolean() }));
  });

  test("does not compile with a schema that gives another payload", () => {
    // @ts-expect-error grams are missing
    r.event("typed-parcel.packed", z.object({ id: z.string() }));
    // @ts-expect-error a text for a number
    r.event("typed-parcel.packed", z.object({ id: z.string(), grams: z.string() }));
    // @ts-expect-error grams may be absent
    r.event("typed-parcel.packed", z.object({ id: z.string(), grams: z.number().optional() }));
    r.event(
      "typed-parcel.packed",
      // @ts-expect-error a number goes in, a text comes out
      z.object({ id: z.string(), grams: z.number().transform(String) }),
    );
    // @ts-expect-error the schema is missing
    r.event("typed-parcel.packed");
    // @ts-expect-error a schema is more than an object
    r.event("typed-parcel.undeclared", {});
  });
});

describe("a kept event", () => {
  test("is kept for some days or for ever", () => {
    r.event("typed-parcel.packed", parcel, { keepDays: 30 });
    r.event("typed-parcel.packed", parcel, { keep: true });
    // @ts-expect-error either of the two
    r.event("typed-parcel.packed", parcel, { keep: true, keepDays: 30 });
    // @ts-expect-error what is not kept says nothing
    r.event("typed-parcel.packed", parcel, { keep: false });
    // @ts-expect-error one of the two
    r.event("typed-parcel.packed", parcel, {});
  });

  test("is read with the payload of its type, and the time", async () => {
    for await (const event of ctx.events("typed-parcel.packed", { since: new Date(), limit: 1 })) {
      expectTypeOf(event).toEqualTypeOf<KeptEvent<{ id: string; grams: number }>>();
      expectTypeOf(event).toExtend<EventOf<"typed-parcel.packed">>();
      expectTypeOf(event.keptAt).toEqualTypeOf<Date>();
    }
    // @ts-expect-error nobody declares it
    ctx.events("typed-parcel.unknown");
    // @ts-expect-error a time is a Date
    ctx.events("typed-parcel.packed", { until: "2026-11-22" });
  });
});

describe("a projection", () => {
  test("gets the events of its types, and a ctx that only reads", () => {
    const usage = r.projection("typed.usage", {
      version: 1,
      on: {
        "typed-parcel.packed": async (given, event, { version }) => {
          expectTypeOf(event).toEqualTypeOf<EventOf<"typed-parcel.packed">>();
          expectTypeOf(version).toEqualTypeOf<number>();
          expectTypeOf(await usage.key(given, "total")).toEqualTypeOf<string>();
          // @ts-expect-error it returns items
          void given.commit;
          // @ts-expect-error nor does it publish
          void given.publish;
          return [{ Delete: { TableName: "t", Key: { pk: "p" } } }];
        },
      },
    });
    expectTypeOf(usage).toEqualTypeOf<Projection>();
    // @ts-expect-error a version is a number
    r.projection("typed.usage", { version: "1", on: {} });
    // @ts-expect-error nobody declares it
    r.projection("typed.usage", { version: 1, on: { "typed-parcel.unknown": async () => [] } });
    // @ts-expect-error no list
    r.projection("typed.usage", { version: 1, on: { "typed-parcel.packed": async () => 7 } });
  });
});

describe("r.on", () => {
  test("gives a ctx, and the event with the payload of its type", () => {
    r.on("typed-parcel.packed", {
      name: "weigh",
      handler: async (given, event) => {
        expectTypeOf(given).toEqualTypeOf<PipelineContext>();
        expectTypeOf(event).toEqualTypeOf<SharedEvent<{ id: string; grams: number }>>();
        expectTypeOf(event).toEqualTypeOf<EventOf<"typed-parcel.packed">>();
        expectTypeOf(event.kind).toEqualTypeOf<"shared">();
        expectTypeOf(event.eventId).toEqualTypeOf<string>();
        expectTypeOf(event.causedBy).toEqualTypeOf<string>();
        expectTypeOf(event.tenantId).toEqualTypeOf<string | undefined>();
        // @ts-expect-error read-only
        event.payload = { id: "", grams: 1 };
        // @ts-expect-error no such field
        event.payload.colour;
      },
    });
    r.on("typed-parcel.lost", {
      name: "search",
      handler: (_given, { payload }) => expectTypeOf(payload).toEqualTypeOf<{ id: string }>(),
    });
  });

  test("does not compile for an undeclared type, or without a name or a handler", () => {
    // @ts-expect-error no such event
    r.on("typed-parcel.found", { name: "cheer", handler: async () => {} });
    // @ts-expect-error the name is missing
    r.on("typed-parcel.packed", async () => {});
    // @ts-expect-error the handler is missing
    r.on("typed-parcel.packed", "weigh");
    r.on("typed-parcel.lost", {
      name: "search",
      // @ts-expect-error another event's payload
      handler: async (_given, event: EventOf<"typed-parcel.packed">) => void event,
    });
  });
});

describe("ctx.publish", () => {
  test("takes an event's payload", () => {
    expectTypeOf(() =>
      ctx.publish("typed-parcel.packed", { id: "p1", grams: 20 }),
    ).returns.resolves.toBeVoid();
    expectTypeOf(ctx.publish<"typed-parcel.lost">)
      .parameter(1)
      .toEqualTypeOf<{ id: string }>();
    ctx.publish("typed-parcel.lost", { id: "p1" }, { afterCommit: false });
  });

  test("an unknown type, or the wrong payload, does not compile", () => {
    // @ts-expect-error no such event
    ctx.publish("typed-parcel.found", { id: "p1" });
    // @ts-expect-error the payload is missing
    ctx.publish("typed-parcel.packed");
    // @ts-expect-error grams are missing
    ctx.publish("typed-parcel.packed", { id: "p1" });
    // @ts-expect-error a text for a number
    ctx.publish("typed-parcel.packed", { id: "p1", grams: "20" });
    // @ts-expect-error no such field
    ctx.publish("typed-parcel.lost", { id: "p1", grams: 20 });
    // @ts-expect-error no such option
    ctx.publish("typed-parcel.lost", { id: "p1" }, { delaySeconds: 60 });
    // @ts-expect-error neither true nor false
    ctx.publish("typed-parcel.lost", { id: "p1" }, { afterCommit: "no" });
  });
});

describe("r.receive", () => {
  const stored = { source: "aws.s3", detailType: "Object Created", input: letter };

  test("gives a ctx, and EventBridge's event with the detail that the schema gives", () => {
    r.receive("letter.stored", {
      ...stored,
      id: ({ id, detail }) => `${id} ${detail.to}`,
      tenant: ({ detail }) => {
        expectTypeOf(detail).toEqualTypeOf<{ to: string; at: Date }>();
        return detail.to === "" ? undefined : detail.to;
      },
      handler: async (given, event) => {
        expectTypeOf(given).toEqualTypeOf<PipelineContext>();
        expectTypeOf(event).toEqualTypeOf<ReceivedEvent<{ to: string; at: Date }>>();
        expectTypeOf(event.detailType).toEqualTypeOf<string>();
        // @ts-expect-error read-only
        event.detail = { to: "", at: new Date() };
        // @ts-expect-error no such field
        event.payload;
      },
    });
  });

  test("does not compile without a required member, or with a wrong type", () => {
    const handler = async () => {};
    // @ts-expect-error the type is missing
    r.receive("letter.stored", { source: "aws.s3", input: letter, handler });
    // @ts-expect-error the input is missing
    r.receive("letter.stored", { source: "aws.s3", detailType: "Object Created", handler });
    // @ts-expect-error the handler is missing
    r.receive("letter.stored", stored);
    // @ts-expect-error no such option
    r.receive("letter.stored", { ...stored, handler, queue: "q" });
    // @ts-expect-error a number is no ID
    r.receive("letter.stored", { ...stored, handler, id: () => 7 });
    // @ts-expect-error a number is no tenant
    r.receive("letter.stored", { ...stored, handler, tenant: async () => 7 });
  });
});

describe("r.job", () => {
  test("the handler gets the schema's output; dedupKey and order get the enqueued payload", () => {
    r.job("parcel.label", {
      input: label,
      handler: async (given, payload) => {
        expectTypeOf(given).toEqualTypeOf<PipelineContext>();
        expectTypeOf(payload).toEqualTypeOf<{ parcel: string; copies: number }>();
      },
      dedupKey: (payload) => {
        expectTypeOf(payload).toEqualTypeOf<{ parcel: string; copies: string }>();
        return payload.parcel;
      },
      dedupScope: "user",
      order: (payload) => {
        expectTypeOf(payload).toEqualTypeOf<{ parcel: string; copies: string }>();
        return payload.copies;
      },
    });
  });

  test("an unknown option, or one of a wrong type, does not compile", () => {
    const handler = async () => {};
    // @ts-expect-error the input is missing
    r.job("parcel.label", { handler });
    // @ts-expect-error the handler is missing
    r.job("parcel.label", { input: label });
    // @ts-expect-error no such option
    r.job("parcel.label", { input: label, handler, retries: 3 });
    // @ts-expect-error a job has no route
    r.job("parcel.label", { input: label, handler, route: "POST /labels" });
    // @ts-expect-error no such scope
    r.job("parcel.label", { input: label, handler, dedupScope: "server" });
    // @ts-expect-error a key is a text
    r.job("parcel.label", { input: label, handler, dedupKey: () => 1 });
    // @ts-expect-error an order is a text
    r.job("parcel.label", { input: label, handler, order: () => undefined });
    r.job("parcel.label", {
      input: label,
      // @ts-expect-error the schema gives a number
      handler: async (_given, payload: { copies: string }) => void payload,
    });
  });
});

describe("ctx.enqueue", () => {
  test("takes a job's payload", () => {
    expectTypeOf(() =>
      ctx.enqueue("typed.parcel.label", { parcel: "p1", copies: "2" }),
    ).returns.resolves.toEqualTypeOf<{
      readonly jobId: string;
    }>();
    expectTypeOf(ctx.enqueue<"typed.parcel.weigh">)
      .parameter(1)
      .toEqualTypeOf<{ id: string }>();
  });

  test("an unknown name, or the wrong payload, does not compile", () => {
    // @ts-expect-error no such job
    ctx.enqueue("typed.parcel.burn", { id: "p1" });
    // @ts-expect-error the feature's name is missing
    ctx.enqueue("parcel.weigh", { id: "p1" });
    // @ts-expect-error an event is no job
    ctx.enqueue("typed-parcel.lost", { id: "p1" });
    // @ts-expect-error the payload is missing
    ctx.enqueue("typed.parcel.weigh");
    // @ts-expect-error what the schema gives is not what it takes
    ctx.enqueue("typed.parcel.label", { parcel: "p1", copies: 2 });
    // @ts-expect-error no such field
    ctx.enqueue("typed.parcel.weigh", { id: "p1", grams: 20 });
    // @ts-expect-error none of the options
    ctx.enqueue("typed.parcel.weigh", { id: "p1" }, { tenant: "acme" });
    // @ts-expect-error no such option
    ctx.enqueue("typed.parcel.weigh", { id: "p1" }, { delay: 1 });
    // @ts-expect-error a time is a Date
    ctx.enqueue("typed.parcel.weigh", { id: "p1" }, { at: "tomorrow" });
  });

  test("takes when the job is due, and its ID takes it back", () => {
    ctx.enqueue("typed.parcel.weigh", { id: "p1" }, { delaySeconds: 60 });
    ctx.enqueue("typed.parcel.weigh", { id: "p1" }, { at: new Date() });
    ctx.enqueue("typed.parcel.weigh", { id: "p1" }, { delaySeconds: 60, afterCommit: false });
    expectTypeOf(ctx.cancelJob).parameters.toEqualTypeOf<[jobId: string]>();
    expectTypeOf(ctx.cancelJob).returns.resolves.toBeBoolean();
  });
});

describe("ctx.step", () => {
  test("gives what JSON makes of the result", () => {
    expectTypeOf(() => ctx.step("a", {}, () => "x" as const)).returns.resolves.toEqualTypeOf<"x">();
    expectTypeOf(() =>
      ctx.step("a", { ifUnknown: "retry" }, async (key) => [key]),
    ).returns.resolves.toEqualTypeOf<readonly string[]>();
    expectTypeOf(() =>
      ctx.step("a", {}, async () => undefined),
    ).returns.resolves.toEqualTypeOf<undefined>();
    const charge = async () => ({
      id: "c1",
      at: new Date(),
      lines: [{ cents: 1, note: undefined as string | undefined }],
    });
    expectTypeOf(() => ctx.step("a", {}, charge)).returns.resolves.toEqualTypeOf<{
      readonly id: string;
      readonly at: string;
      readonly lines: readonly { readonly cents: number; readonly note: string | undefined }[];
    }>();
    expectTypeOf(() => ctx.step("a", {}, () => 7n)).returns.resolves.toBeNever();
  });

  test("wrong options do not compile", () => {
    // @ts-expect-error the options are missing
    ctx.step("a", () => 1);
    // @ts-expect-error no such way
    ctx.step("a", { ifUnknown: "ask" }, () => 1);
    // @ts-expect-error the key is a text
    ctx.step("a", {}, (key: number) => key);
  });
});

describe("r.channel", () => {
  test("send gets a ctx, the schema's output, and the delivery's ID", () => {
    r.channel("typed-post", {
      input: letter,
      send: async (given, message, delivery) => {
        expectTypeOf(given).toEqualTypeOf<PipelineContext>();
        expectTypeOf(message).toEqualTypeOf<{ to: string; at: Date }>();
        expectTypeOf(delivery).toEqualTypeOf<{ readonly id: string }>();
      },
    });
  });

  test("an unknown option, or one of a wrong type, does not compile", () => {
    const send = async () => {};
    // @ts-expect-error the input is missing
    r.channel("typed-post", { send });
    // @ts-expect-error send is missing
    r.channel("typed-post", { input: letter });
    // @ts-expect-error no such option
    r.channel("typed-post", { input: letter, send, retries: 3 });
    // @ts-expect-error a channel is no job
    r.channel("typed-post", { input: letter, handler: send });
    r.channel("typed-post", {
      input: letter,
      // @ts-expect-error the schema gives a date
      send: async (_given, message: { at: string }) => void message,
    });
  });
});

describe("ctx.delivery.send", () => {
  test("takes a channel, an object and a key", () => {
    expectTypeOf(() =>
      ctx.delivery.send("typed-post", { to: "ann", at: "now" }),
    ).returns.resolves.toEqualTypeOf<{ readonly deliveryId: string }>();
    ctx.delivery.send("typed-post", { to: "ann", at: "now" }, { key: "k1" });
    ctx.delivery.send("typed-post", { to: "ann", at: "now" }, { afterCommit: false });
    ctx.delivery.send("typed-post", { to: "ann", at: "now" }, {});
  });

  test("takes the channels that every server has", () => {
    ctx.delivery.send("log", { any: 1 });
    const webhook = { url: "https://hook.invalid/", body: { done: true } };
    ctx.delivery.send("webhook", webhook, { key: "k1" });
  });

  test("anything else does not compile", () => {
    // @ts-expect-error the message is missing
    ctx.delivery.send("typed-post");
    // @ts-expect-error a text is no object
    ctx.delivery.send("typed-post", "hello");
    // @ts-expect-error a list is no object
    ctx.delivery.send("typed-post", ["hello"]);
    // @ts-expect-error no such channel
    ctx.delivery.send("typed-pots", { to: "ann", at: "now" });
    // @ts-expect-error a date is missing
    ctx.delivery.send("typed-post", { to: "ann" });
    // @ts-expect-error a number for a text
    ctx.delivery.send("webhook", { url: 1, body: {} });
    // @ts-expect-error a channel is a name
    ctx.delivery.send(1, {});
    // @ts-expect-error a key is a text
    ctx.delivery.send("typed-post", { to: "ann", at: "now" }, { key: 1 });
    // @ts-expect-error no such option
    ctx.delivery.send("typed-post", { to: "ann", at: "now" }, { delaySeconds: 1 });
    // @ts-expect-error the key alone is no option
    ctx.delivery.send("typed-post", { to: "ann", at: "now" }, "k1");
    // @ts-expect-error read-only
    ctx.delivery.send = async () => {};
  });
});

describe("the members of ctx", () => {
  test("are read-only", () => {
    const other = {} as PipelineContext;
    // @ts-expect-error read-only
    ctx.publish = other.publish;
    // @ts-expect-error read-only
    ctx.enqueue = other.enqueue;
    // @ts-expect-error read-only
    ctx.delivery = other.delivery;
  });
});

describe("PermanentError", () => {
  test("is an Error, with a message and perhaps a cause", () => {
    const error = new PermanentError("the account is closed", { cause: new Error("404") });
    expectTypeOf(error).toExtend<Error>();
    expectTypeOf(error.message).toBeString();
    // @ts-expect-error the message is missing
    new PermanentError();
    // @ts-expect-error no such option
    new PermanentError("closed", { status: 404 });
  });
});
