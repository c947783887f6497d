import { quoted } from "../../base/errors/quoted.ts";
import { isIdentifier } from "../../base/identity/access.ts";

type Refuse = (message: string) => Error;

/** Checks the ID that an application reads from an event. @throws the error of `refuse`. */
export function eventId(handler: string, id: unknown, refuse: Refuse): string {
  if (typeof id === "string" && id !== "") return id;
  throw refuse(`${handler}: its id is ${quoted(id)}; return a string of the event`);
}

/**
 * Checks the tenant that an application reads from an event, `undefined` or `null` for none.
 * @throws the error of `refuse`.
 */
export function eventTenant(handler: string, given: unknown, refuse: Refuse): string | undefined {
  const tenantId = given ?? undefined;
  if (tenantId === undefined || isIdentifier(tenantId)) return tenantId;
  throw refuse(
    `${handler}: its tenant is ${quoted(tenantId)}; return a string of 1 to 256 characters`,
  );
}
