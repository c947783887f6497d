import type { FieldError } from "../../base/errors/errors.ts";
import { refuseWrong, unknownFields } from "../../base/errors/wrong-fields.ts";
import { isIdentifier } from "../../base/identity/access.ts";
import { parseRoles } from "../../base/identity/authenticator.ts";

/** Input of a route: parameters of the path and members of the body. */
export type ApiKeyInput = Readonly<Record<string, unknown>>;

/** Longest life of a key, and longest overlap of two secrets, in seconds. */
const [maxExpirySeconds, maxOverlapSeconds] = [10 * 365 * 86_400, 30 * 86_400];

/** @throws ValidationError with each wrong field. */
export function readKey(given: ApiKeyInput) {
  const { name, roles, expiresInSeconds: seconds } = given;
  const parsed = Array.isArray(roles) ? parseRoles(roles) : undefined;
  const expires = seconds ?? undefined;
  const wrong: (FieldError | undefined)[] = [
    ...unknownFields(
      given,
      ["name", "roles", "expiresInSeconds"],
      "the route takes name, roles, expiresInSeconds",
    ),
    problem("name", isIdentifier(name), "has to be a string of 1 to 256 characters"),
    problem("roles", parsed !== undefined, "has to be a list of at most 100 roles"),
    problem(
      "expiresInSeconds",
      expires === undefined || isWhole(expires, 1, maxExpirySeconds),
      `has to be a whole number from 1 to ${maxExpirySeconds}`,
    ),
  ];
  refuseWrong(wrong);
  // Safe casts: everything was checked.
  return {
    name: name as string,
    roles: parsed as readonly string[],
    seconds: expires as number | undefined,
  };
}

/** @throws ValidationError with each wrong field. */
export function readOverlap(given: ApiKeyInput): number {
  const { overlapSeconds } = given;
  const rule = `has to be a whole number from 0 to ${maxOverlapSeconds}`;
  refuseWrong([
    ...unknownFields(given, ["overlapSeconds"], "the route takes overlapSeconds"),
    problem("overlapSeconds", isWhole(overlapSeconds, 0, maxOverlapSeconds), rule),
  ]);
  return overlapSeconds as number; // safe cast: it was checked
}

function isWhole(value: unknown, least: number, most: number): boolean {
  return Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most;
}

function problem(field: string, isRight: boolean, error: string): FieldError | undefined {
  return isRight ? undefined : { field, error };
}
