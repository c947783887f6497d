import { type ErrorCode, errorCodes } from "./codes.ts";

/** A problem with an input field. `field` is its dotted path (specification 2.7). */
export interface FieldError {
  readonly field: string;
  readonly error: string;
}

/** Options of typed errors. */
export interface ErrorDetails {
  /** The underlying error. Logged with its whole chain of causes, never sent to a client. */
  readonly cause?: unknown;
  /** Headers of the response, such as `retry-after`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Options of errors that have a default message. */
export interface MessageDetails extends ErrorDetails {
  /** Replaces the default message sent to the client. The code does not change. */
  readonly message?: string;
}

/** Brand of every typed error. Lets two copies of the package recognize each other's errors. */
export const errorBrand: unique symbol = Symbol.for("keelson.error") as never;

/**
 * Base class of typed errors, with an HTTP status from 400 to 599 (specification 7). Its message is
 * sent to the client.
 *
 * @throws RangeError if the status is not a whole number from 400 to 599.
 * @example
 * throw new PipelineError("The archive is being rebuilt", 503);
 */
export class PipelineError extends Error {
  // Explicit, here and below, because bundlers that shorten class names would also shorten them in
  // the log.
  static override readonly name: string = "PipelineError";
  /** The `error` member of the response body. */
  readonly code: string;
  /** The HTTP status. */
  readonly status: number;
  /** Headers of the response. */
  readonly headers: Readonly<Record<string, string>>;
  /** The status for error handlers that follow `http-errors`, such as Middy's. */
  declare readonly statusCode: number;
  /** Allows the same error handlers to send the message. `true` for every status. */
  declare readonly expose: boolean;

  constructor(
    message: string,
    status: number,
    details: ErrorDetails & { readonly code?: string } = {},
  ) {
    super(message, "cause" in details ? { cause: details.cause } : undefined);
    if (!Number.isInteger(status) || status < 400 || status > 599) {
      throw new RangeError(
        `PipelineError: status ${status} is not a whole number from 400 to 599 (message: ${message})`,
        {
          cause: this,
        },
      );
    }
    this.name = new.target.name;
    this.code = details.code ?? "pipeline_error";
    this.status = status;
    this.headers = details.headers ?? {};
    Object.defineProperties(this, { statusCode: hidden(status), expose: hidden(true) });
  }

  get [errorBrand](): true {
    return true;
  }
}

/**
 * 404 `not_found`, "<resource> <id> not found": a resource does not exist, or the caller must not
 * learn that it does (specification 7).
 *
 * @param details Another message, or an object that contains it.
 * @example
 * throw new NotFoundError("file", input.id);
 */
export class NotFoundError extends PipelineError {
  static override readonly name: string = "NotFoundError";
  constructor(resource: string, id: string, details: MessageDetails | string = {}) {
    const { message = `${resource} ${id} not found`, ...rest } = detailsOf(details);
    super(message, errorCodes.not_found, { ...rest, code: "not_found" });
  }
}

/**
 * 403 `access_denied`: the caller lacks a permission (specification 7).
 *
 * @param details Another message, or an object that contains it.
 * @example
 * throw new AccessDeniedError("files.delete");
 */
export class AccessDeniedError extends PipelineError {
  static override readonly name: string = "AccessDeniedError";
  constructor(permission: string, details: MessageDetails | string = {}) {
    const { message = `Access denied: ${permission}`, ...rest } = detailsOf(details);
    super(message, errorCodes.access_denied, { ...rest, code: "access_denied" });
  }
}

/**
 * 422 `validation_error`, "Validation failed": the input is invalid. `fields` lists the invalid
 * fields (specification 7).
 *
 * @param details Another message, or an object that contains it.
 * @example
 * throw new ValidationError([{ field: "sizeMb", error: "must be at most 10" }]);
 */
export class ValidationError extends PipelineError {
  static override readonly name: string = "ValidationError";
  /** The problems, one per field. */
  readonly fields: readonly FieldError[];

  constructor(fields: readonly FieldError[], details: MessageDetails | string = {}) {
    const { message = "Validation failed", ...rest } = detailsOf(details);
    super(message, errorCodes.validation_error, { ...rest, code: "validation_error" });
    this.fields = fields.map(({ field, error }) => ({ field, error }));
  }
}

/**
 * 409 with an application code, "Conflict: <code>": the state of a resource forbids the request
 * (specification 7).
 *
 * @param details The message, or an object that contains it.
 * @example
 * throw new ConflictError("file_locked", "Ann is editing the file");
 */
export class ConflictError extends PipelineError {
  static override readonly name: string = "ConflictError";
  constructor(conflictCode: string, details: MessageDetails | string = {}) {
    const { message = `Conflict: ${conflictCode}`, ...rest } = detailsOf(details);
    super(message, 409, { ...rest, code: conflictCode });
  }
}

/**
 * Error raised by keelson. Its code determines the status; see {@link errorCodes} (specification
 * 7).
 *
 * @example
 * if (error instanceof FrameworkError && error.code === "config_unavailable") retryLater();
 */
export class FrameworkError extends PipelineError {
  static override readonly name: string = "FrameworkError";
  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, errorCodes[code], { ...details, code });
  }
}

/**
 * Defines a member that does not appear in log lines. It stays writable for older code that sets
 * these members itself.
 */
function hidden(value: unknown): PropertyDescriptor {
  return { value, writable: true, configurable: true };
}

/** Treats a plain string as the message. */
function detailsOf(details: MessageDetails | string): MessageDetails {
  return typeof details === "string" ? { message: details } : details;
}

/** Reports whether `error` is a typed error, from this copy of the package or another. */
export function isTypedError(error: unknown): error is PipelineError {
  return (
    typeof error === "object" &&
    error !== null &&
    (error as Partial<PipelineError>)[errorBrand] === true
  );
}
