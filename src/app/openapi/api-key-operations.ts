import { dateTime, type JsonSchema, object, text } from "./schema.ts";

const time = dateTime();
const timeOrNull = { ...time, type: ["string", "null"] };
const name: JsonSchema = {
  ...text,
  pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f]+$",
  maxLength: 256,
};
const roles: JsonSchema = { type: "array", items: name, maxItems: 100 };
const shown = { id: text, name: text, roles, createdAt: time, expiresAt: timeOrNull };
const secret: JsonSchema = {
  type: "string",
  pattern: "^kln_[0-9A-Za-z]{49}$",
  description: "The key, in the first answer only.",
};
const created = object({ ...shown, "key?": secret });
const id = { id: { type: "string", minLength: 1 } };
const closed = { additionalProperties: false };
const whole = (minimum: number, maximum: number, or: readonly string[] = []): JsonSchema => ({
  type: or.length === 0 ? "integer" : ["integer", ...or],
  minimum,
  maximum,
});

export const apiKeyOperations = {
  "keelson.api-key.create": {
    description: "Creates an API key of the tenant, with roles that the caller has.",
    input: object({ name, roles, "expiresInSeconds?": whole(1, 315_360_000, ["null"]) }, closed),
    answers: { 201: created },
    errors: { validation_error: 422, too_many_api_keys: 409 },
  },
  "keelson.api-key.list": {
    description: "The API keys of the tenant, oldest first, without their secrets.",
    answers: {
      200: object({
        items: { type: "array", items: object({ ...shown, lastUsedAt: timeOrNull }) },
      }),
    },
  },
  "keelson.api-key.rotate": {
    description: "Replaces the secret of an API key. The former one is valid during the overlap.",
    input: object({ ...id, overlapSeconds: whole(0, 2_592_000) }, closed),
    answers: { 200: created },
    errors: {
      not_found: 404,
      validation_error: 422,
      api_key_expired: 409,
      condition_failed: 409,
    },
  },
  "keelson.api-key.revoke": {
    description: "Deletes an API key. Its secrets are not valid any more.",
    input: object(id, closed),
    answers: { 204: undefined },
    errors: { not_found: 404, condition_failed: 409 },
  },
};
