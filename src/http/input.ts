import type { StandardSchemaV1 } from "@standard-schema/spec";
import { type FieldError, ValidationError } from "../errors/errors.ts";
import { parseBody } from "./body.ts";
import type { BodyKind } from "./message.ts";
import { parseForm } from "./query.ts";

/** The parts of a request that its input is read from. */
export interface InputParts {
  /** Prototype-free, and for the input alone: it becomes the input. */
  readonly params: Record<string, unknown>;
  readonly query: string;
  readonly contentType: string | undefined;
  readonly bytes: Uint8Array;
  /** What a middleware has parsed the body to. */
  readonly form?: Readonly<Record<string, unknown>> | undefined;
  readonly kind: BodyKind;
  /** A GET and a HEAD have no body as far as their input goes. */
  readonly method: string;
  /** Whether a schema is going to read it. Default `false`. */
  readonly isChecked?: boolean;
}

/**
 * Reads the input of a request: path, query and body in one prototype-free object, which is that of the path with
 * more in it. JSON that is no object, text and bytes arrive as `body`.
 *
 * @throws ValidationError naming each field that comes from two sources; FrameworkError for a
 * query or a body that cannot be parsed.
 */
export function readInput({
  params: input,
  query,
  contentType,
  bytes,
  form,
  kind,
  method,
  isChecked,
}: InputParts): Record<string, unknown> {
  const isBodiless = method === "GET" || method === "HEAD";
  if (query === "" && isBodiless) return input;
  const twice: FieldError[] = [];
  const add = (source: Readonly<Record<string, unknown>>) => {
    for (const name of Object.keys(source)) {
      if (name in input) twice.push({ field: shown(name), error: "is given twice: in path, query or body" });
      else input[name] = source[name];
    }
  };
  if (query !== "") add(parseForm(query, "query"));
  const body = isBodiless ? undefined : form === undefined ? parseBody(kind, contentType, bytes, isChecked) : { fields: form };
  if (body !== undefined) add("fields" in body ? body.fields : { body: body.body });
  if (twice.length > 0) throw new ValidationError(twice.slice(0, maxFields));
  return input;
}

/**
 * Validates an input against a Standard Schema. Without a schema it passes as it is.
 *
 * @throws ValidationError with a dotted path for each issue; one of the whole input has the
 * field `input`.
 */
export function validateInput(schema: StandardSchemaV1 | undefined, input: unknown): unknown {
  if (schema === undefined) return input;
  const outcome = schema["~standard"].validate(input);
  return outcome instanceof Promise ? outcome.then(accepted) : accepted(outcome);
}

const maxFields = 100;

function accepted(outcome: StandardSchemaV1.Result<unknown>): unknown {
  if (outcome.issues === undefined) return outcome.value;
  throw new ValidationError(
    outcome.issues.slice(0, maxFields).map(({ path = [], message }) => ({
      field: shown(path.map((part) => String(typeof part === "object" ? part.key : part)).join(".")) || "input",
      error: String(message).slice(0, 500),
    })),
  );
}

function shown(name: string): string {
  return name.slice(0, 200);
}
