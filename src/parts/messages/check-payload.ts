import type { StandardSchemaV1 } from "@standard-schema/spec";

/**
 * Validates what goes into a message, or came in one.
 *
 * @param refuse - makes the error of what does not fit
 * @throws what `refuse` makes, naming at most ten paths.
 */
export async function checkPayload(
  schema: StandardSchemaV1 | undefined,
  payload: unknown,
  refuse: (problems: string) => Error,
): Promise<unknown> {
  if (schema === undefined) return payload;
  const outcome = await schema["~standard"].validate(payload);
  if (outcome.issues === undefined) return outcome.value;
  const problems = outcome.issues.slice(0, 10).map(({ path = [], message }) => {
    const dotted = path.map((part) => String(typeof part === "object" ? part.key : part)).join(".");
    return `${dotted === "" ? "" : `${dotted}: `}${message}`.slice(0, 500);
  });
  throw refuse(problems.join("; "));
}

/** Whether a text has the shape of an event's type (specification 2.8). */
export function isEventType(type: string): boolean {
  return /^[a-z][a-z0-9-]{0,62}\.[a-z][a-z0-9-]{0,62}$/.test(type);
}
