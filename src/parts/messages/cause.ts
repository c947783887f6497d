import { PermanentError } from "../../base/errors/permanent-error.ts";
import { isIdentifier, maxNameLength } from "../../base/identity/claims.ts";

/** Tenant, user, cause and originator of a message. Every event and every job carries them. */
export interface Cause {
  /** ID of the request, event or job that caused the message (specification 2.8). */
  readonly causedBy: string;
  /** ID of the request that started the whole chain (specification 6.3). */
  readonly origRequestId: string;
  /** Tenant of the cause; `undefined` if the caller was anonymous. */
  readonly tenantId?: string | undefined;
  /** User of the cause; `undefined` if the caller was anonymous. */
  readonly userId?: string | undefined;
  /**
   * `system` if a system run created the message. Absent for messages caused by requests, and for
   * messages without this field.
   */
  readonly originator?: "system" | undefined;
}

/**
 * Checks whether a message asks for a system run. A tenant's message never does: it stays behind
 * the wall.
 */
export function asksSystem({
  originator,
  tenantId,
}: Pick<Cause, "originator" | "tenantId">): boolean {
  return originator === "system" && tenantId === undefined;
}

/**
 * Parses a queue message as a JSON object.
 * @throws PermanentError if it is not a JSON object.
 */
export function objectOf(text: string, what: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new PermanentError(`${what} is not JSON`);
  }
  return recordOf(value, what);
}

/**
 * Returns a value as an object.
 * @throws PermanentError if it is not an object.
 */
export function recordOf(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new PermanentError(`${what} is not an object`);
  return value as Readonly<Record<string, unknown>>; // safe: checked above, and its members are unknown
}

/**
 * Reads the cause of a message.
 * @throws PermanentError with the name of an invalid member.
 */
export function causeOf(message: Readonly<Record<string, unknown>>): Cause {
  const tenantId = nameOf(message, "tenantId");
  const userId = nameOf(message, "userId");
  if (userId !== undefined && tenantId === undefined)
    throw new PermanentError("userId comes without a tenantId");
  const { originator } = message;
  if (originator !== undefined && originator !== "system")
    throw new PermanentError('originator is not "system"');
  return {
    causedBy: idOf(message, "causedBy"),
    origRequestId: idOf(message, "origRequestId"),
    tenantId,
    userId,
    originator,
  };
}

/**
 * Reads an ID in the format that keelson generates and accepts in requests.
 * @throws PermanentError if it has another format.
 */
export function idOf(message: Readonly<Record<string, unknown>>, member: string): string {
  const value = message[member];
  if (typeof value === "string" && /^[A-Za-z0-9._:=+/@-]{1,128}$/.test(value)) return value;
  throw new PermanentError(`${member} is not an ID`);
}

/** Reads a user or tenant ID by the same rule as in tokens. */
function nameOf(message: Readonly<Record<string, unknown>>, member: string): string | undefined {
  const value = message[member];
  if (value === undefined) return undefined;
  if (isIdentifier(value)) return value;
  throw new PermanentError(
    `${member} is not a text of 1 to ${maxNameLength} characters without control characters`,
  );
}
