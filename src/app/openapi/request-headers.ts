import { onceOf } from "../registry/expected-code.ts";
import type { ServerOptions } from "../registry/options.ts";
import { idempotencyKeyPattern } from "../run/write.ts";
import type { DeclaredHandler } from "./declared-operation.ts";
import type { JsonSchema, Schemas } from "./schema.ts";

export const headerParameters: Schemas = Object.freeze({
  "X-Request-ID": {
    name: "X-Request-ID",
    in: "header",
    description:
      "Names the request in logs and answers: 1 to 128 characters of `A-Z a-z 0-9 . _ : = + / @ -`. Another is made in the place of one that is not of these, or is missing.",
    schema: { type: "string" },
  },
  "Idempotency-Key": keyParameter(false),
  "Idempotency-Key.required": keyParameter(true),
});

function keyParameter(required: boolean): JsonSchema {
  return {
    name: "Idempotency-Key",
    in: "header",
    required,
    description:
      "Makes retries safe: a request with the same key gets the answer of the first, and nothing is done again. Send a new UUID with each operation, and the same one with each retry of it.",
    schema: { type: "string", pattern: idempotencyKeyPattern },
  };
}

export function requestHeaders(handler: DeclaredHandler, options: ServerOptions): JsonSchema[] {
  const once = onceOf(handler, options);
  const key = typeof once === "object" ? "Idempotency-Key.required" : "Idempotency-Key";
  return ["X-Request-ID", ...(once === false ? [] : [key])].map((name) => ({
    $ref: `#/components/parameters/${name}`,
  }));
}
