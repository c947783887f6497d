import { maxNameLength } from "../../base/identity/access.ts";
import type { LifecycleState } from "../../base/process/lifecycle.ts";
import type { ConfigSource } from "../../parts/config/read/cascade.ts";
import type { ParsedRoute } from "../../parts/http/route.ts";
import type { StreamForm } from "../../parts/http/streamed-output.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import { apiKeyOperations } from "./api-key-operations.ts";
import { dateTime, type JsonSchema, object, type Schemas, text } from "./schema.ts";

export type DeclaredHandler = Omit<HandlerDeclaration, "run">;

export interface DeclaredOperation {
  readonly route: ParsedRoute;
  /** In order. Routes with the same path use the names of the first. */
  readonly pathNames: readonly string[];
  readonly handler: DeclaredHandler;
  readonly own: OwnOperation | undefined;
  readonly input: JsonSchema | undefined;
  /** Of each item, if the operation streams. */
  readonly output: JsonSchema | undefined;
  readonly stream: StreamForm["kind"] | undefined;
  readonly mayBeNothing: boolean;
  /** Whether rate limits apply. */
  readonly isLimited: boolean;
}

interface OwnOperation {
  readonly summary?: string;
  readonly description: string;
  readonly input?: JsonSchema;
  readonly answers: Readonly<Record<number, JsonSchema | undefined>>;
  readonly errors?: Readonly<Record<string, number>>;
}

const time = dateTime();
const number: JsonSchema = { type: "number" };
const flag: JsonSchema = { type: "boolean" };
const version: JsonSchema = { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER };
const oneOf = (...values: readonly string[]): JsonSchema => ({ type: "string", enum: values });
const id: JsonSchema = {
  ...text,
  pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f]+$",
  maxLength: maxNameLength,
};

/** In a body, `null` means that the member is absent. */
function orNull(members: Schemas): Schemas {
  return Object.fromEntries(
    Object.entries(members).map(([name, { type, enum: values, ...rest }]) => {
      const nullable = Array.isArray(values) ? { enum: [...values, null] } : {};
      return [name, { type: [type, "null"], ...nullable, ...rest }];
    }),
  );
}

const list = (items: JsonSchema, more: JsonSchema = {}): JsonSchema => ({
  type: "array",
  items,
  ...more,
});

function ofConfig(
  description: string,
  input: Schemas,
  answer: JsonSchema,
  errors: Readonly<Record<string, number>>,
): OwnOperation {
  const closed = { additionalProperties: false };
  return { description, input: object(input, closed), answers: { 200: answer }, errors };
}

const states: readonly LifecycleState[] = [
  "starting",
  "running",
  "draining",
  "in-flight-drain",
  "workers-stopped",
  "resources-closed",
  "flushed",
];
const readiness = (status: string) =>
  object({
    status: { const: status },
    state: oneOf(...states),
    checks: { type: "object", additionalProperties: oneOf("ok", "failing") },
  });

const record = object(
  { level: oneOf("debug", "info", "warn", "error"), msg: text, "requestId?": {} },
  { additionalProperties: true },
);

const scope = oneOf("system", "tenant", "user");
const sources: readonly ConfigSource[] = [
  "user-row",
  "tenant-row",
  "system-row",
  "app-override",
  "computed",
  "default",
];
const source = oneOf(...sources, "missing" satisfies ConfigSource);
const target = { "scope?": scope, "tenantId?": id, "userId?": id };
const change = orNull({
  ...target,
  "reason?": { ...text, maxLength: 1_000 },
  "expectedVersion?": version,
});
const written = object({ key: text, "value?": {}, source, "version?": version });
const type = oneOf("number", "boolean", "select", "text");
const item = { key: text, type, scope, "value?": {}, source };
const shown = { ...item, "isSet?": flag, "version?": version };
const stamps = { "updatedAt?": time, "updatedBy?": text, "reason?": text };
const level = object({
  source: oneOf(...sources),
  isSet: flag,
  active: flag,
  "value?": {},
  "version?": version,
  ...stamps,
  "expiresAt?": {
    ...text,
    description:
      "ISO 8601, or seconds since the epoch where the row has a time that no calendar has.",
  },
  "note?": text,
});
const declaration = object({
  type,
  scope,
  "bounds?": object({ min: number, max: number }),
  "options?": list(text),
  computed: flag,
  encrypted: flag,
  allowPerRequest: flag,
  read: text,
  write: text,
});
const use = object({
  limit: text,
  kind: oneOf("rate", "quota", "concurrency", "in-flight"),
  "window?": text,
  "taken?": { type: "integer", minimum: 0 },
  "limited?": flag,
  "until?": time,
});
const limit = { type: "integer", minimum: 1, maximum: 100 };
const past = object({ version, action: oneOf("set", "reset", "undo"), "value?": {}, ...stamps });
const key = { key: { type: "string", minLength: 1 } };
const ofKey = { not_found: 404, validation_error: 422 };
const ofChange = { ...ofKey, version_conflict: 409 };

export const ownOperations: Readonly<Record<string, OwnOperation>> = Object.freeze({
  "keelson.health.live": {
    description: "Whether the process answers.",
    answers: { 200: object({ status: { const: "live" } }) },
  },
  "keelson.health.ready": {
    description:
      "Whether the server takes requests: it is not while it starts or drains, and while a check fails.",
    answers: { 200: readiness("ready"), 503: readiness("unavailable") },
  },
  "keelson.log.write": {
    description:
      "Logs a record of a browser, or a list of records, under the caller's name. Accepts either all records or none.",
    input: object({ body: { anyOf: [record, list(record, { maxItems: 100 })] } }),
    answers: { 202: object({ accepted: { type: "integer", minimum: 0 } }) },
    errors: { validation_error: 422, too_many_requests: 429 },
  },
  "keelson.config.list": ofConfig(
    "The configuration keys that the caller may read, with their values.",
    target,
    object({ items: list(object(shown)) }),
    { validation_error: 422 },
  ),
  "keelson.config.explain": ofConfig(
    "The source of a key's value: every level with its value, and the user, time and reason of the change.",
    { ...key, ...target },
    object({
      ...shown,
      levels: list(level),
      declaration,
      "cacheAgeMs?": number,
      "limits?": list(use),
    }),
    ofKey,
  ),
  "keelson.config.set": ofConfig(
    "Sets a key's value. The key's own rule determines the access.",
    { ...key, value: {}, ...orNull({ "expiresAt?": time }), ...change },
    written,
    ofChange,
  ),
  "keelson.config.reset": ofConfig(
    "Removes a key's value at a level. The key's own rule determines the access.",
    { ...key, ...change },
    written,
    ofChange,
  ),
  "keelson.config.history": ofConfig(
    "The changes of a key's value at a level, newest first.",
    { ...key, ...target, "before?": version, "limit?": limit },
    object({ items: list(past), "next?": version }),
    ofKey,
  ),
  "keelson.config.undo": ofConfig(
    "Restores an earlier version of a key's value. The key's own rule determines the access.",
    { ...key, ...change, ...orNull({ "version?": version }) },
    written,
    { ...ofChange, nothing_to_undo: 409 },
  ),
  ...apiKeyOperations,
  "keelson.openapi.show": {
    summary: "OpenAPI",
    description: "This document.",
    answers: { 200: { type: "object" }, 304: undefined },
  },
});
