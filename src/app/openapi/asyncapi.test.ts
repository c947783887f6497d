import { Ajv2020 } from "ajv/dist/2020.js";
import { buildServer, defineFeature } from "keelson";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { envelopeText, eventPayload } from "../../parts/messages/envelope.ts";
import { jobPayload, jobText } from "../../parts/messages/job-message.ts";
import type { ServerOptions } from "../registry/options.ts";
import { serverInternals } from "../server/server.ts";
import { asyncApiDocument } from "./asyncapi.ts";
import type { JsonSchema } from "./schema.ts";

type Declare = Parameters<typeof defineFeature<object, "mugs">>[1];
async function documentOf(declare: Declare) {
  const server = buildServer({ features: [defineFeature("mugs", declare)] });
  const { document } = await asyncApiDocument(serverInternals(server), import.meta.dirname);
  // Safe: as the specification has it.
  return document as {
    readonly info: JsonSchema;
    readonly channels: Readonly<Record<string, { readonly messages: object }>>;
    readonly operations: Readonly<Record<string, JsonSchema>>;
    readonly components: {
      readonly messages: Readonly<Record<string, { readonly payload: JsonSchema }>>;
      readonly schemas: JsonSchema;
    };
  };
}

interface Messages {
  readonly messages: Readonly<Record<string, { readonly payload: JsonSchema }>>;
}

function payloadOf(
  { messages }: Messages,
  name: string,
): { readonly properties: { readonly payload: JsonSchema } } {
  return Object(messages[name]).payload;
}

const handler = async () => {};
const id = z.object({ id: z.string() });

describe("asyncApiDocument", () => {
  test("lists events on the bus, jobs and deliveries in the queue, and their senders and receivers", async () => {
    const document = await documentOf((r) => {
      r.event("mug.made", id as never);
      r.on("mug.made" as never, { name: "count", handler });
      r.on("mug.made" as never, { name: "announce", handler });
      r.job("mug.wash", { input: id, handler });
      r.channel("mail" as never, { input: id as never, send: handler });
      r.channel("fax" as never, { input: id as never, send: handler });
    });
    expect(document).toMatchObject({
      asyncapi: "3.0.0",
      info: { title: "API", version: "0.0.0", tags: [{ name: "mugs" }] },
      defaultContentType: "application/json",
      channels: {
        events: {
          address: null,
          messages: { "mug.made": { $ref: "#/components/messages/mug.made" } },
        },
        jobs: { address: null },
      },
    });
    expect(Object.keys(document.channels["jobs"]?.messages ?? {})).toEqual([
      "mugs.mug.wash",
      "delivery.fax",
      "delivery.mail",
    ]);
    expect(
      Object.entries(document.operations).map(([name, { action }]) => `${action} ${name}`),
    ).toEqual([
      "send publish.mug.made",
      "receive consume.mugs.mug.announce",
      "receive consume.mugs.mug.count",
      "send enqueue.mugs.mug.wash",
      "send enqueue.delivery.fax",
      "send enqueue.delivery.mail",
      "receive run.mugs.mug.wash",
      "receive run.delivery.fax",
      "receive run.delivery.mail",
    ]);
  });

  test("names each message and payload for code generators, and keeps a schema's own ID", async () => {
    const { components } = await documentOf((r) => {
      r.event("mug.made", id as never);
      r.job("mug.wash", { input: id.meta({ title: "Washing" }), handler });
      r.job("mug.sell", { input: id.meta({ id: "Sale" }), handler });
    });
    expect(
      Object.values(components.messages).map(({ payload }) => [
        payload["title"],
        Object(payload["properties"]).payload,
      ]),
    ).toEqual([
      ["mug.made", expect.objectContaining({ title: "mug.made.payload" })],
      ["mugs.mug.sell", { $ref: "#/components/schemas/Sale" }],
      ["mugs.mug.wash", expect.objectContaining({ title: "Washing" })],
    ]);
  });

  test("is empty without messages", async () => {
    expect(await documentOf(() => {})).toMatchObject({
      channels: {},
      operations: {},
      components: { messages: {}, schemas: {} },
    });
  });

  test("has the name and version of the API", async () => {
    const infoOf = async (openapi?: ServerOptions["openapi"]) => {
      const server = buildServer({ features: [], ...(openapi === undefined ? {} : { openapi }) });
      return (await asyncApiDocument(serverInternals(server), import.meta.dirname)).document[
        "info"
      ];
    };
    expect(await infoOf({ title: "Mugs", version: "1.2.3" })).toMatchObject({
      title: "Mugs",
      version: "1.2.3",
    });
    expect(await infoOf()).toMatchObject({ title: "API", version: "0.0.0" });
    expect(await infoOf(false)).toMatchObject({ title: "API", version: "0.0.0" });
  });

  test("accepts events and jobs in their wire format, and nothing else", async () => {
    const { components } = await documentOf((r) => {
      r.event("mug.made", z.strictObject({ id: z.string() }) as never);
      r.job("mug.wash", { input: z.strictObject({ id: z.string() }), handler });
    });
    const cause = { causedBy: "r1", origRequestId: "r1", tenantId: "acme", userId: "ann" };
    const proof = { key: "k1", mac: "a".repeat(43) };
    const trace = { traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" };
    const sent = {
      kind: "shared",
      type: "mug.made",
      eventId: "e1",
      payload: eventPayload("mug.made", { id: "m1" }),
      ...cause,
    } as const;
    const event = JSON.parse(envelopeText(sent, { proof, trace })) as object; // safe: it is an object
    const job = JSON.parse(
      jobText(
        { jobId: "j1", name: "mugs.mug.wash", payload: jobPayload("x", { id: "m1" }), ...cause },
        { proof, trace },
      ),
    ) as object; // safe: as above
    const isRefused = (name: string, value: object) =>
      !new Ajv2020({ strict: false }).validate(
        { ...components.messages[name]?.payload, components },
        value,
      );
    expect([isRefused("mug.made", event), isRefused("mugs.mug.wash", job)]).toEqual([false, false]);
    for (const [originator, refused] of [
      ["system", false],
      ["root", true],
    ] as const) {
      expect([
        isRefused("mug.made", { ...event, originator }),
        isRefused("mugs.mug.wash", { ...job, originator }),
      ]).toEqual([refused, refused]);
    }
    expect(isRefused("mug.made", { ...event, type: "mug.lost" })).toBe(true);
    expect(isRefused("mug.made", { ...event, payload: { id: "m1" } })).toBe(true);
    expect(isRefused("mugs.mug.wash", { ...job, payload: { id: 1 } })).toBe(true);
    expect(isRefused("mugs.mug.wash", { ...job, tenantId: "" })).toBe(true);
    expect(isRefused("mugs.mug.wash", { ...job, trace: {} })).toBe(true);
  });

  test("adds the request's ID to each branch of a payload", async () => {
    const { components } = await documentOf((r) => {
      const [made, lost] = [
        z.strictObject({ by: z.literal("a") }),
        z.strictObject({ by: z.literal("b") }),
      ];
      r.event("mug.made", z.discriminatedUnion("by", [made, lost]) as never);
      r.event("mug.lost", z.union([made, lost]) as never);
    });
    for (const [name, keyword] of [
      ["mug.made", "oneOf"],
      ["mug.lost", "anyOf"],
    ] as const) {
      const { properties } = payloadOf(components, name);
      expect(properties.payload[keyword]).toMatchObject([
        {
          properties: { by: { const: "a" }, requestId: {} },
          required: ["by", "requestId"],
          additionalProperties: false,
        },
        {
          properties: { by: { const: "b" }, requestId: {} },
          required: ["by", "requestId"],
          additionalProperties: false,
        },
      ]);
    }
  });

  test("writes lists and references as draft-07 does", async () => {
    const node = z.object({
      get kids() {
        return z.array(node).meta({ description: "Below it." });
      },
    });
    const { components } = await documentOf((r) => {
      const pair = z.tuple([z.string(), z.number()]);
      r.job("mug.wash", {
        input: z.object({
          pair,
          more: z.tuple([z.string()]).rest(z.number()),
          items: z.array(z.string()),
          prefixItems: z.string(),
        }),
        handler,
      });
      r.job("mug.dry", { input: z.object({ node: node.describe("The first.") }), handler });
      const one = {
        type: "object",
        properties: { own: { $ref: "#/$defs/a", items: {}, title: "Own" }, $ref: {} },
        $defs: { a: true },
      };
      const validate = (value: unknown) => ({ value });
      const jsonSchema = { input: () => one, output: () => one };
      r.job("mug.fill", {
        input: { "~standard": { version: 1, vendor: "own", validate, jsonSchema } } as never,
        handler,
      });
    });
    const { properties } = payloadOf(components, "mugs.mug.wash");
    expect(properties.payload).toMatchObject({
      properties: {
        pair: { items: [{ type: "string" }, { type: "number" }], additionalItems: false },
        more: { items: [{ type: "string" }], additionalItems: { type: "number" } },
        items: { type: "array", items: { type: "string" } },
        prefixItems: { type: "string" },
      },
    });
    expect(payloadOf(components, "mugs.mug.fill").properties.payload["properties"]).toMatchObject({
      own: {
        allOf: [
          { $ref: expect.stringMatching(/^#\/components\/schemas\//) },
          { title: "Own", items: {} },
        ],
      },
      $ref: {},
    });
    const text = JSON.stringify(components);
    expect(text).not.toContain("$defs");
    const refs = [...text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map(
      ([, name = ""]) => name,
    );
    expect(refs.filter((name) => !Object.hasOwn(components.schemas, name))).toEqual([]);
  });
});
