import { PermanentError } from "../../base/errors/permanent-error.ts";
import { isIdentifier, maxNameLength } from "../../base/identity/claims.ts";

/** The tenant, user, cause and originator of a message. Every event and every job carries them. */
export interface Cause {
  /** The ID of the request, event or job that caused it (specification 2.8). */
  readonly causedBy: string;
  /** The ID of the request that started the whole chain (specification 6.3). */
  readonly origRequestId: string;
  /** The tenant of the cause; `undefined` if the caller was anonymous. */
  readonly tenantId?: string | undefined;
  /** The user of the cause; `undefined` if the caller was anonymous. */
  readonly userId?: string | undefined;
  /** `system` if a run of the system created the message; absent for all that requests lead to, and for what says nothing of it. */
  readonly originator?: "system" | undefined;
}

/** Whether the run that a message asks for is the system's. A tenant's never is: it stays behind the wall. */
export function asksSystem({
  originator,
  tenantId,
}: Pick<Cause, "originator" | "tenantId">): boolean {
  return originator === "system" && tenantId === undefined;
}

/** Reads what came over a queue as an object. @throws PermanentError where it is none. */
export function objectOf(text: string, what: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new PermanentError(`${what} is not JSON`);
  }
  return recordOf(value, what);
}

/** A value as an object. @throws PermanentError where it is none. */
export function recordOf(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new PermanentError(`${what} is not an object`);
  return value as Readonly<Record<string, unknown>>; // safe: it is an object, and its members are unknown
}

/** Reads the cause of a message. @throws PermanentError naming the member that is not as it has to be. */
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

/** An ID as keelson makes them, and as it accepts those of requests. @throws PermanentError. */
export function idOf(message: Readonly<Record<string, unknown>>, member: string): string {
  const value = message[member];
  if (typeof value === "string" && /^[A-Za-z0-9._:=+/@-]{1,128}$/.test(value)) return value;
  throw new PermanentError(`${member} is not an ID`);
}

/** A user or tenant, by the rule that tokens are held to. */
function nameOf(message: Readonly<Record<string, unknown>>, member: string): string | undefined {
  const value = message[member];
  if (value === undefined) return undefined;
  if (isIdentifier(value)) return value;
  throw new PermanentError(
    `${member} is not a text of 1 to ${maxNameLength} characters without control characters`,
  );
}
