import type { StandardSchemaV1 } from "@standard-schema/spec";

/**
 * Validates the payload of an outgoing or received message.
 * @param refuse - creates the error for an invalid payload.
 * @throws the error of `refuse`, with at most ten problems.
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
