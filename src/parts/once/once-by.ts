import { isRecord } from "../../base/errors/option-table.ts";
import { leastKeptSeconds, type OnceOptions } from "./claim.ts";

const mostKept = 604_800;

/** Valid forms of `once`, for error messages. */
export const onceForms = `false or { key: "either" | "idempotency-key", required: true | false, keepSeconds: ${leastKeptSeconds} to ${mostKept} }, without "either" if a key is required`;

/** @param more - further members that the options may have. */
export function isOnce(value: unknown, more: readonly string[] = []): value is OnceOptions | false {
  if (value === false) return true;
  if (!isRecord(value)) return false;
  const { key, required, keepSeconds = leastKeptSeconds, ...others } = value;
  return (
    (key === "idempotency-key" || key === undefined || (key === "either" && required !== true)) &&
    (required === undefined || typeof required === "boolean") &&
    Number.isSafeInteger(keepSeconds) &&
    Number(keepSeconds) >= leastKeptSeconds &&
    Number(keepSeconds) <= mostKept &&
    Object.keys(others).every((name) => more.includes(name))
  );
}
