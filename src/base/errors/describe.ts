import { errorCodes, type FieldError, isTypedError } from "./errors.ts";

/** Body of every error response (specification 2.7). */
interface ErrorBody {
  readonly error: string;
  readonly message: string;
  readonly requestId: string;
  /** Present only for validation errors. */
  readonly fields?: readonly FieldError[];
  /** Present only in development. */
  readonly stack?: string;
}

export interface ErrorDescription {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ErrorBody;
  readonly log: { readonly level: "warn" | "error"; readonly data: Record<string, unknown> };
}

interface ErrorSituation {
  readonly requestId: string;
  readonly environment: "development" | "test" | "production";
}

const maxText = 2_000;
const maxStack = 20_000;
const maxFields = 100;
const maxCauses = 10;

/**
 * Returns the response and log data for any thrown value (specification 7); never throws. The
 * message of an untyped error appears only in the log.
 */
export function describeError(
  error: unknown,
  { requestId, environment }: ErrorSituation,
): ErrorDescription {
  const described = typed(error) ?? untyped;
  const { status, code, message, headers, fields } = described;
  const stack = textOf(error, "stack", maxStack);
  const shown = environment === "development" && stack !== undefined ? { stack } : {};
  const invalid = fields === undefined ? {} : { fields };
  return {
    status,
    headers,
    body: { error: code, message, requestId, ...invalid, ...shown },
    log: logOf(error, described, stack),
  };
}

export function errorLog(error: unknown): ErrorDescription["log"] {
  return logOf(error, typed(error) ?? untyped, textOf(error, "stack", maxStack));
}

function logOf(
  error: unknown,
  { status, code, fields }: NonNullable<ReturnType<typeof typed>>,
  stack: string | undefined,
): ErrorDescription["log"] {
  const isServerError = status >= 500;
  return {
    level: isServerError ? "error" : "warn",
    data: {
      error: code,
      status,
      message: textOf(error, "message", maxText) ?? thrownText(error),
      ...(fields === undefined ? {} : { fields }),
      ...(isServerError ? { ...(stack === undefined ? {} : { stack }), ...causesOf(error) } : {}),
    },
  };
}

const untyped = {
  status: errorCodes.internal_error,
  code: "internal_error",
  message: "Internal server error",
  headers: {},
  fields: undefined,
};

/** Checks the types of the members, because the brand does not guarantee them. */
function typed(error: unknown) {
  try {
    if (!isTypedError(error)) return undefined;
    const { status, code, message, headers } = error;
    if (!Number.isInteger(status) || status < 400 || status > 599) return undefined;
    if (typeof code !== "string" || typeof message !== "string") return undefined;
    const fields =
      code === "validation_error" && "fields" in error ? fieldsOf(error.fields) : undefined;
    return {
      status,
      code: bounded(code, 200),
      message: bounded(message, maxText),
      headers: headersOf(headers),
      fields,
    };
  } catch {
    return undefined;
  }
}

function fieldsOf(fields: unknown): FieldError[] | undefined {
  if (!Array.isArray(fields)) return undefined;
  const sound: FieldError[] = [];
  // Read by index, because an array of an unknown class may override `slice` and `map`.
  for (let index = 0; index < Math.min(fields.length, maxFields); index++) {
    const field: Partial<FieldError> | null | undefined = fields[index];
    sound.push({
      field: bounded(String(field?.field), 200),
      error: bounded(String(field?.error), 500),
    });
  }
  return sound;
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
  while (cause !== undefined && !seen.has(cause) && causes.length < maxCauses) {
    seen.add(cause);
    const name = textOf(cause, "name", 200);
    const stack = textOf(cause, "stack", maxStack);
    const message = textOf(cause, "message", maxText) ?? thrownText(cause);
    causes.push({
      ...(name === undefined ? {} : { name }),
      message,
      ...(stack === undefined ? {} : { stack }),
    });
    cause = memberOf(cause, "cause");
  }
  return causes.length === 0 ? {} : { causes };
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

function thrownText(thrown: unknown): string {
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
