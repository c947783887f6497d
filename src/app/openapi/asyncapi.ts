import type { StandardSchemaV1 } from "@standard-schema/spec";
import { maxNameLength } from "../../base/identity/access.ts";
import { idForm } from "../../base/request/trace.ts";
import type { ReceiverDeclaration } from "../handlers/receiver.ts";
import type { DeclaredServer } from "../registry/declared-server.ts";
import { sortedBy } from "./canonical.ts";
import { type Components, componentRef, createComponents } from "./components.ts";
import { createSchemaReader, type ServerDocument, titleOf } from "./json-schema.ts";
import { defined, type JsonSchema, mapParts, object, type Schemas, text } from "./schema.ts";

/**
 * AsyncAPI 3: events on the bus, jobs and deliveries in the queue, in their wire format. Schemas
 * use AsyncAPI's format, a superset of JSON Schema draft-07.
 */
export async function asyncApiDocument(
  { registry, options }: DeclaredServer,
  from: string,
): Promise<ServerDocument> {
  const reader = createSchemaReader({ from });
  const components = createComponents(commonSchemas);
  const payloadOf = async (schema: StandardSchemaV1, where: string) =>
    components.embed(await reader.read(schema, "input", where), where.replaceAll(" ", "."));
  const events = await Promise.all(
    sortedBy([...registry.events.values()], ({ type }) => type).map(
      async ({ type, feature, schema }) =>
        message(
          type,
          feature,
          `The event ${type}. On EventBridge it is the detail, and ${type} the detail type.`,
          {
            ...{ kind: { const: "shared" }, type: { const: type }, eventId: id },
            payload: withRequestId(await payloadOf(schema, `event ${type}`), components),
          },
          { group: componentRef("keelson.group") },
        ),
    ),
  );
  const jobs = await Promise.all(
    byName(registry.jobs).map(async ({ name, feature, input }) =>
      message(name, feature, `The job ${name}.`, {
        ...{ jobId: id, name: { const: name } },
        payload: await payloadOf(input, `job ${name}`),
      }),
    ),
  );
  const deliveries = await Promise.all(
    byName(registry.channels).map(async ({ name, feature, input }) => {
      // Safe cast: each channel that an application declares has a schema.
      const content = await payloadOf(input as StandardSchemaV1, `channel ${name}`);
      const delivered = { channel: { const: name }, message: content, key: text };
      const summary = `The message that ctx.delivery.send passes to the channel ${name}.`;
      return message(`delivery.${name}`, feature, summary, {
        ...{ jobId: id, name: { const: "keelson.delivery.send" } },
        payload: object(delivered),
      });
    }),
  );
  const received = await Promise.all(
    byName(registry.receivers).map(async (receiver) =>
      receivedMessage(receiver, await payloadOf(receiver.input, `receiver ${receiver.name}`)),
    ),
  );
  const queued = [...jobs, ...deliveries];
  const all = [...events, ...queued, ...received];
  const messages = Object.fromEntries(all.map(({ name, content }) => [name, draft07(content)]));
  const features = [...new Set(all.map(({ feature }) => feature))].sort();
  const document = {
    asyncapi: "3.0.0",
    info: {
      ...titleOf(options),
      tags: features.map((name) => ({ name, description: `The feature ${name}.` })),
    },
    defaultContentType: "application/json",
    channels: {
      ...channel("events", "Event bus", "EventBridge, and the queue that its rule fills.", events),
      ...channel("jobs", "Job queue", "SQS. Deliveries are jobs, too.", queued),
      ...channel("received", "Events of others", "Event buses, and one queue.", received),
    },
    operations: Object.fromEntries([
      ...events.map((one) => operation("publish", "send", "events", one)),
      ...byName(registry.consumers).map(({ name, type, feature }) =>
        operation("consume", "receive", "events", { name: type, feature }, name),
      ),
      ...queued.map((one) => operation("enqueue", "send", "jobs", one)),
      ...queued.map((one) => operation("run", "receive", "jobs", one)),
      ...received.map((one) => operation("receive", "receive", "received", one)),
    ]),
    components: { messages, schemas: mapParts(components.reachedFrom(messages), draft07) },
  };
  return { document, unsaid: reader.unsaid };
}

interface Message {
  readonly name: string;
  readonly feature: string;
  readonly content: JsonSchema;
}

const id = componentRef("keelson.id");
const owner = componentRef("keelson.owner");

const commonSchemas: Schemas = {
  "keelson.id": { type: "string", pattern: `^${idForm}$` },
  "keelson.owner": { type: "string", minLength: 1, maxLength: maxNameLength },
  "keelson.originator": {
    const: "system",
    description: "A run of the system created the message; absent for all that requests lead to.",
  },
  "keelson.group": {
    ...{ type: "string", minLength: 1, maxLength: 100 },
    description: "The tenant, or its hash: the message group on the queue. Older versions omit it.",
  },
  "keelson.proof": {
    type: "object",
    description: "Proves that the message comes from this server.",
    properties: { key: text, mac: { ...text, pattern: "^[A-Za-z0-9_-]{43}$" } },
    required: ["key", "mac"],
  },
  "keelson.trace": {
    type: "object",
    description: "The trace that it belongs to, as the headers of W3C Trace Context have it.",
    properties: { traceparent: text, tracestate: text },
    required: ["traceparent"],
  },
};

function message(
  name: string,
  feature: string,
  summary: string,
  { payload, ...members }: Schemas & { readonly payload: JsonSchema },
  more: Schemas = {},
): Message {
  const required = {
    ...members,
    // Code generators derive type names from the title.
    payload: "$ref" in payload ? payload : { title: `${name}.payload`, ...payload },
    ...{ causedBy: id, origRequestId: id },
  };
  const optional = {
    ...{ tenantId: owner, userId: owner },
    originator: componentRef("keelson.originator"),
    proof: componentRef("keelson.proof"),
    trace: componentRef("keelson.trace"),
    ...more,
  };
  const content = {
    ...{ name, title: name, summary, contentType: "application/json", tags: [{ name: feature }] },
    correlationId: {
      description: "The request that started the chain.",
      location: "$message.payload#/origRequestId",
    },
    payload: {
      title: name,
      ...object(required),
      properties: { ...required, ...optional },
    },
  };
  return { name, feature, content };
}

/** EventBridge's own envelope, with the detail that the receiver takes. */
function receivedMessage(
  { name, feature, source, detailType, bus }: ReceiverDeclaration,
  detail: JsonSchema,
): Message {
  const required = {
    ...{ id, source: { const: source }, "detail-type": { const: detailType } },
    detail: "$ref" in detail ? detail : { title: `${name}.detail`, ...detail },
  };
  const optional = {
    ...{ version: text, time: text, account: text, region: text },
    resources: { type: "array", items: text },
  };
  const content = {
    ...{ name, title: name, contentType: "application/json", tags: [{ name: feature }] },
    summary: `The event ${detailType} of ${source}, from the bus ${bus}.`,
    payload: {
      title: name,
      ...object(required),
      properties: { ...required, ...optional },
    },
  };
  return { name, feature, content };
}

/** Payloads on the bus also contain the request ID, which no event schema declares. */
function withRequestId(schema: JsonSchema, components: Components): JsonSchema {
  const known = components.resolve(schema);
  const { properties = {}, required = [], anyOf, oneOf } = known;
  // Each cast here is safe, because JSON Schema requires these types.
  const each = (branches: unknown) =>
    branches &&
    (branches as readonly JsonSchema[]).map((branch) => withRequestId(branch, components));
  return defined({
    ...known,
    ...{ anyOf: each(anyOf), oneOf: each(oneOf) },
    ...{ type: "object", properties: { ...(properties as object), requestId: id } },
    required: [...(required as readonly string[]), "requestId"],
  });
}

/** Draft-07 writes tuples differently and ignores keywords next to a reference. */
function draft07(schema: JsonSchema): JsonSchema {
  const { prefixItems, items, $ref, ...rest } = mapParts(schema, draft07);
  const list = Array.isArray(prefixItems)
    ? { items: prefixItems, additionalItems: items }
    : { prefixItems, items };
  // A `$ref` that is not a string is a property with this name.
  if (typeof $ref !== "string") return defined({ ...rest, ...list, $ref });
  const beside = defined({ ...rest, ...list });
  return Object.keys(beside).length === 0 ? { $ref } : { allOf: [{ $ref }, beside] };
}

function channel(
  name: string,
  title: string,
  description: string,
  messages: readonly Message[],
): JsonSchema {
  if (messages.length === 0) return {};
  const refs = messages.map((one) => [one.name, { $ref: `#/components/messages/${one.name}` }]);
  return { [name]: { address: null, title, description, messages: Object.fromEntries(refs) } };
}

function operation(
  verb: string,
  action: string,
  channelName: string,
  { name: of, feature }: Omit<Message, "content">,
  name = of,
): readonly [string, JsonSchema] {
  const content = {
    action,
    channel: { $ref: `#/channels/${channelName}` },
    tags: [{ name: feature }],
    messages: [{ $ref: `#/channels/${channelName}/messages/${of}` }],
  };
  return [`${verb}.${name.replaceAll(":", ".")}`, content];
}

function byName<Item extends { readonly name: string }>(
  items: ReadonlyMap<string, Item>,
): readonly Item[] {
  return sortedBy([...items.values()], ({ name }) => name);
}
