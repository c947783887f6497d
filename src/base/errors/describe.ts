import { errorCodes } from "./error-codes.ts";
import { type FieldError, isTypedError } from "./errors.ts";

export interface ErrorDescription {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Body of every error response (specification 2.7). */
  readonly body: {
    readonly error: string;
    readonly message: string;
    readonly requestId: string;
    readonly fields?: readonly FieldError[];
    /** Of `quota_exceeded`. */
    readonly details?: unknown;
    readonly stack?: string;
  };
  readonly log: { readonly level: "warn" | "error"; readonly data: Record<string, unknown> };
}

const maxText = 2_000;

/** Never throws. An untyped error's message appears only in the log (specification 7). */
export function describeError(
  error: unknown,
  {
    requestId,
    environment,
  }: { readonly requestId: string; readonly environment: "development" | "test" | "production" },
): ErrorDescription {
  const { status, code, message, headers, fields, details } = typed(error) ?? untyped;
  return {
    status,
    headers,
    body: {
      error: code,
      message,
      requestId,
      ...(fields && { fields }),
      ...(details && { details }),
      ...(environment === "development" && stackOf(error)),
    },
    log: errorLog(error),
  };
}

export function errorLog(error: unknown): ErrorDescription["log"] {
  const { status, code, fields } = typed(error) ?? untyped;
  const isServerError = status >= 500;
  return {
    level: isServerError ? "error" : "warn",
    data: {
      error: code,
      status,
      message: messageOf(error),
      ...(fields && { fields }),
      ...(isServerError && { ...stackOf(error), ...causesOf(error) }),
    },
  };
}

const untyped = {
  status: errorCodes.internal_error,
  code: "internal_error",
  message: "Internal server error",
  headers: {},
  fields: undefined,
  details: undefined,
};

/** The brand does not guarantee the types of the members. */
function typed(error: unknown) {
  try {
    if (!isTypedError(error)) return undefined;
    const { status, code, message, headers } = error;
    if (!Number.isInteger(status) || status < 400 || status > 599) return undefined;
    if (typeof code !== "string" || typeof message !== "string") return undefined;
    const fields =
      code === "validation_error" && "fields" in error ? fieldsOf(error.fields) : undefined;
    // Of no other code, because an application's error may have a member of this name.
    const details =
      code === "quota_exceeded" && "details" in error ? detailsOf(error.details) : undefined;
    return {
      status,
      code: bounded(code, 200),
      message: bounded(message, maxText),
      headers: headersOf(headers),
      fields,
      details,
    };
  } catch {
    return undefined;
  }
}

function fieldsOf(fields: unknown): FieldError[] | undefined {
  if (!Array.isArray(fields)) return undefined;
  const sound: FieldError[] = [];
  // Read by index, because an array of an unknown class may override `slice` and `map`.
  for (let index = 0; index < Math.min(fields.length, 100); index++) {
    const field: Partial<FieldError> | null | undefined = fields[index];
    sound.push({
      field: bounded(String(field?.field), 200),
      error: bounded(String(field?.error), 500),
    });
  }
  return sound;
}

function detailsOf(details: unknown): Record<string, unknown> | undefined {
  const { quota, used, limit, resetsAt } = Object(details);
  const known = { quota: bounded(String(quota), 200), used: Number(used), limit: Number(limit) };
  return resetsAt === undefined ? known : { ...known, resetsAt: bounded(String(resetsAt), 50) };
}

function headersOf(headers: unknown): Record<string, string> {
  const safe: Record<string, string> = {};
  if (typeof headers !== "object" || headers === null) return safe;
  for (const [name, value] of Object.entries(headers)) {
    const isSafe =
      /^[\w-]+$/.test(name) && typeof value === "string" && /^[\t\x20-\x7e]{0,1000}$/.test(value);
    if (isSafe) safe[name.toLowerCase()] = value;
  }
  return safe;
}

function causesOf(error: unknown): { causes?: Record<string, unknown>[] } {
  const seen = new Set<unknown>([error]);
  const causes: Record<string, unknown>[] = [];
  let cause = memberOf(error, "cause");
  while (cause !== undefined && !seen.has(cause) && causes.length < 10) {
    seen.add(cause);
    const name = textOf(cause, "name", 200);
    const named = name === undefined ? {} : { name };
    causes.push({ ...named, message: messageOf(cause), ...stackOf(cause) });
    cause = memberOf(cause, "cause");
  }
  return causes.length === 0 ? {} : { causes };
}

function stackOf(error: unknown): { stack?: string } {
  const stack = textOf(error, "stack", 20_000);
  return stack === undefined ? {} : { stack };
}

function memberOf(error: unknown, member: "cause" | "message" | "stack" | "name"): unknown {
  try {
    return typeof error === "object" && error !== null
      ? (error as Record<string, unknown>)[member]
      : undefined;
  } catch {
    return undefined;
  }
}

function textOf(error: unknown, member: "message" | "stack" | "name", limit: number) {
  const value = memberOf(error, member);
  return typeof value === "string" ? bounded(value, limit) : undefined;
}

function messageOf(thrown: unknown): string {
  const message = textOf(thrown, "message", maxText);
  if (message !== undefined) return message;
  try {
    return thrown === null
      ? "thrown null"
      : bounded(`thrown ${typeof thrown}: ${String(thrown)}`, maxText);
  } catch {
    return `thrown ${typeof thrown}`;
  }
}

function bounded(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit)}… (${text.length - limit} more)`;
}
