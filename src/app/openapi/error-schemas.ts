import { object, type Schemas, text } from "./schema.ts";

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
