import { FrameworkError } from "../../base/errors/errors.ts";
import { isRecord } from "../../base/errors/option-table.ts";
import { bodyTooLarge } from "../../parts/http/input.ts";

/**
 * Returns the form that a middleware has parsed; `undefined` for any other body. Files of
 * `multipart/form-data` stay in the form that the middleware chose.
 *
 * @throws FrameworkError `payload_too_large`, `malformed_request`
 */
export function parsedForm(
  body: object,
  contentType: string | undefined,
  limitBytes: number,
): Readonly<Record<string, unknown>> | undefined {
  if (!isRecord(body) || !isForm.test(contentType ?? "")) return undefined;
  if (sizeOf(body, 0) > limitBytes) throw bodyTooLarge(limitBytes);
  return body;
}

const isForm = /^\s*(application\/x-www-form-urlencoded|multipart\/form-data)\s*(;|$)/i;
/** Maximum nesting of a form. Fields, lists of fields and files in lists need less. */
const maxFormDepth = 8;

function sizeOf(value: unknown, depth: number): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  if (value instanceof Uint8Array) return value.byteLength;
  if (typeof value !== "object" || value === null) return 0;
  if (depth === maxFormDepth) {
    const message = `The form is nested deeper than ${maxFormDepth} levels`;
    throw new FrameworkError("malformed_request", message);
  }
  return Object.entries(value).reduce(
    (sum, [name, part]) => sum + Buffer.byteLength(name) + sizeOf(part, depth + 1),
    0,
  );
}
