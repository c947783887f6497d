import { type JsonSchema, object, type Schemas, text } from "./schema.ts";

const whole: JsonSchema = Object.freeze({ type: "integer", minimum: 0 });

export const errorSchemas: Schemas = Object.freeze({
  Error: {
    type: "object",
    description: "The body of every error.",
    properties: {
      error: { type: "string", description: "The code, for programs." },
      message: { type: "string", description: "The reason, for people." },
      requestId: { type: "string", description: "The ID of the request, the same as in the logs." },
      fields: {
        type: "array",
        description: "For `validation_error`: the invalid fields and the reasons.",
        items: object({ field: text, error: text }),
      },
      details: {
        description: "Of `quota_exceeded`: the usage, the limit, and when the quota starts again.",
        ...object({ quota: text, used: whole, limit: whole, "resetsAt?": text }),
      },
    },
    required: ["error", "message", "requestId"],
  },
  Problem: {
    description:
      "The same error in the format of RFC 9457, for clients that accept `application/problem+json`.",
    allOf: [
      { $ref: "#/components/schemas/Error" },
      object({
        type: { ...text, format: "uri-reference" },
        title: text,
        status: { type: "integer" },
        detail: text,
      }),
    ],
  },
});
