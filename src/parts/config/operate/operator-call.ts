import { ValidationError } from "../../../base/errors/errors.ts";
import { quoted } from "../../../base/errors/quoted.ts";
import { unknownFields } from "../../../base/errors/wrong-fields.ts";

/** Names of the options of the operators' functions, which their routes take as fields. */
const target = ["scope", "tenantId", "userId"] as const;
const change = [...target, "reason", "expectedVersion"] as const;
export const optionsOf = Object.freeze({
  setConfig: ["expiresAt", ...change],
  resetConfig: change,
  undoConfig: [...change, "version"],
  configHistory: [...target, "before", "limit"],
  explainConfig: target,
} as const);

/**
 * Checks what plain JavaScript may pass: a key's ID, a handle that does not exist, or a misspelled
 * option, which would change the caller's own row.
 * @throws TypeError without a handle; ValidationError with the unknown options, named in its message.
 */
export function assertCall(call: keyof typeof optionsOf, handle: unknown, options: object): void {
  if (typeof handle !== "object" || handle === null || !("definition" in handle))
    throw new TypeError(
      `${call}: ${quoted(handle)} is not the handle of a configuration key; pass one that r.config returned`,
    );
  const known = optionsOf[call];
  const fields = unknownFields(options, known, `${call} takes ${known.join(", ")}`);
  if (fields.length === 0) return;
  const problems = fields.map(({ field, error }) => `${field} ${error}`);
  throw new ValidationError(fields, `${call}: ${problems.join("; ")}`);
}
