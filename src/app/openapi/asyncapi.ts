import type { StandardSchemaV1 } from "@standard-schema/spec";
import { maxNameLength } from "../../base/identity/claims.ts";
import { idForm } from "../../base/request/trace.ts";
import type { DeclaredServer } from "../registry/declared-server.ts";
import { type Components, createComponents } from "./components.ts";
import { createSchemaReader, type UnsaidSchema } from "./json-schema.ts";
import type { JsonSchema } from "./schema.ts";
import { mapParts } from "./schema.ts";

export interface AsyncApiDocument {
  /** Byte-identical for the same declarations. */
  readonly document: JsonSchema;
  /** Schemas and parts of schemas that JSON Schema cannot express. */
  readonly unsaid: readonly UnsaidSchema[];
}

/**
 * Creates the AsyncAPI 3 document of a server: events on the bus, and jobs and deliveries in the
 * queue, in their wire format. Schemas use AsyncAPI's format, a superset of JSON Schema draft-07.
 *
 * @param from - directory from which the application's packages are resolved
 */
export async function asyncApiDocument(
  { registry, options }: DeclaredServer,
  from: string,
): Promise<AsyncApiDocument> {
  const reader = createSchemaReader({ from });
  const components = createComponents(commonSchemas);
  const payloadOf: PayloadReader = async (schema, where) =>
    components.embed(await reader.read(schema, "input", where), where.replaceAll(" ", "."));
  const events = await Promise.all(
    byName([...registry.events.values()], ({ type }) => type).map(
      async ({ type, feature, schema }) => {
        const payload = withRequestId(await payloadOf(schema, `event ${type}`), components);
        return message(
          type,
          feature,
          `The event ${type}. On EventBridge it is the detail, and ${type} the detail type.`,
          {
            ...{ kind: { const: "shared" }, type: { const: type }, eventId: id },
            payload,
          },
        );
      },
    ),
  );
  const jobs = await Promise.all(
    byName([...registry.jobs.values()], ({ name }) => name).map(
      async ({ name, feature, input }) => {
        const payload = await payloadOf(input, `job ${name}`);
        return message(name, feature, `The job ${name}.`, {
          jobId: id,
          name: { const: name },
          payload,
        });
      },
    ),
  );
  const deliveries = await Promise.all(
    byName([...registry.channels.values()], ({ name }) => name).map(
      async ({ name, feature, input }) => {
        // Safe: channels declared by an application must have a schema.
        const content = await payloadOf(input as StandardSchemaV1, `channel ${name}`);
        const delivered = { channel: { const: name }, message: content, key: { type: "string" } };
        return message(
          `delivery.${name}`,
          feature,
          `What ctx.delivery.send gives the channel ${name}.`,
          {
            ...{ jobId: id, name: { const: "keelson.delivery.send" } },
            payload: objectOf(delivered),
          },
        );
      },
    ),
  );
  const queued = [...jobs, ...deliveries];
  const consumers = byName([...registry.consumers.values()], ({ name }) => name);
  const messages = Object.fromEntries(
    [...events, ...queued].map((one) => [one.name, draft07(one.content)]),
  );
  const document = {
    asyncapi: "3.0.0",
    info: infoOf(options, new Set([...events, ...queued].map(({ feature }) => feature))),
    defaultContentType: "application/json",
    channels: {
      ...channel("events", "Event bus", "EventBridge, and the queue that its rule fills.", events),
      ...channel("jobs", "Job queue", "SQS. Deliveries are jobs, too.", queued),
    },
    operations: Object.fromEntries([
      ...events.map((one) => operation(`publish.${one.name}`, "send", "events", one)),
      ...consumers.map(({ name, type, feature }) =>
        operation(`consume.${name.replaceAll(":", ".")}`, "receive", "events", {
          name: type,
          feature,
        }),
      ),
      ...queued.map((one) => operation(`enqueue.${one.name}`, "send", "jobs", one)),
      ...queued.map((one) => operation(`run.${one.name}`, "receive", "jobs", one)),
    ]),
    components: {
      messages,
      schemas: mapParts(components.reachedFrom(messages), draft07),
    },
  };
  return { document, unsaid: reader.unsaid };
}

type PayloadReader = (schema: StandardSchemaV1, where: string) => Promise<JsonSchema>;

interface Message {
  readonly name: string;
  readonly feature: string;
  readonly content: JsonSchema;
}

const id = { $ref: "#/components/schemas/keelson.id" };
const owner = { $ref: "#/components/schemas/keelson.owner" };

/** Schemas of the members that all messages share. */
const commonSchemas: Readonly<Record<string, JsonSchema>> = {
  "keelson.id": { type: "string", pattern: `^${idForm}$` },
  "keelson.owner": { type: "string", minLength: 1, maxLength: maxNameLength },
  "keelson.originator": {
    const: "system",
    description: "A run of the system created the message; absent for all that requests lead to.",
  },
  "keelson.proof": {
    type: "object",
    description: "Proves that the message comes from this server.",
    properties: {
      key: { type: "string" },
      mac: { type: "string", pattern: "^[A-Za-z0-9_-]{43}$" },
    },
    required: ["key", "mac"],
  },
  "keelson.trace": {
    type: "object",
    description: "The trace that it belongs to, as the headers of W3C Trace Context have it.",
    properties: { traceparent: { type: "string" }, tracestate: { type: "string" } },
    required: ["traceparent"],
  },
};

type Members = Readonly<Record<string, JsonSchema>> & { readonly payload: JsonSchema };

function message(name: string, feature: string, summary: string, members: Members): Message {
  const cause = { causedBy: id, origRequestId: id };
  const [proof, trace] = ["proof", "trace"].map((name) => ({
    $ref: `#/components/schemas/keelson.${name}`,
  }));
  const optional = {
    tenantId: owner,
    userId: owner,
    originator: { $ref: "#/components/schemas/keelson.originator" },
    proof,
    trace,
  };
  // Code generators derive type names from the title.
  const { payload } = members;
  const named = {
    ...members,
    payload: "$ref" in payload ? payload : { title: `${name}.payload`, ...payload },
  };
  const content = {
    ...{ name, title: name, summary, contentType: "application/json", tags: [{ name: feature }] },
    correlationId: {
      description: "The request that began the chain.",
      location: "$message.payload#/origRequestId",
    },
    payload: {
      title: name,
      ...objectOf({ ...named, ...cause }),
      properties: { ...named, ...cause, ...optional },
    },
  };
  return { name, feature, content };
}

function objectOf(properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return { type: "object", properties, required: Object.keys(properties) };
}

/**
 * Adds the request ID to an event's payload. The bus carries it, but the event's schema does not
 * declare it.
 */
function withRequestId(schema: JsonSchema, components: Components): JsonSchema {
  const known = components.resolve(schema);
  const { properties = {}, required = [], anyOf, oneOf } = known;
  const each = (branches: unknown) =>
    (branches as readonly JsonSchema[]).map((branch) => withRequestId(branch, components)); // safe: a list of schemas, in JSON Schema
  return {
    ...known,
    ...(anyOf === undefined ? {} : { anyOf: each(anyOf) }),
    ...(oneOf === undefined ? {} : { oneOf: each(oneOf) }),
    // Safe, in both lines: JSON Schema requires these types.
    ...{ type: "object", properties: { ...(properties as object), requestId: id } },
    required: [...(required as readonly string[]), "requestId"],
  };
}

/**
 * Converts a schema from draft 2020-12 to draft-07. It changes tuples, and references that have
 * sibling keywords.
 */
function draft07(schema: JsonSchema): JsonSchema {
  const { prefixItems, items, $ref, ...rest } = mapParts(schema, draft07);
  const list = Array.isArray(prefixItems)
    ? { items: prefixItems, additionalItems: items }
    : { prefixItems, items };
  const isReference = typeof $ref === "string"; // otherwise, it is a property with this name
  const beside = Object.fromEntries(
    Object.entries({ ...rest, ...list, ...(isReference ? {} : { $ref }) }).filter(
      ([, part]) => part !== undefined,
    ),
  );
  if (!isReference) return beside;
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
  name: string,
  action: string,
  channelName: string,
  { name: of, feature }: Omit<Message, "content">,
) {
  const content = {
    action,
    channel: { $ref: `#/channels/${channelName}` },
    tags: [{ name: feature }],
    messages: [{ $ref: `#/channels/${channelName}/messages/${of}` }],
  };
  return [name, content] as const;
}

function infoOf(options: DeclaredServer["options"], features: ReadonlySet<string>): JsonSchema {
  const { title = "API", version = "0.0.0" } =
    options.openapi === false ? {} : (options.openapi ?? {});
  return {
    title,
    version,
    tags: [...features].sort().map((name) => ({ name, description: `The feature ${name}.` })),
  };
}

function byName<Item>(items: readonly Item[], nameOf: (item: Item) => string): readonly Item[] {
  return items.toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
}
