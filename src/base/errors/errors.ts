import { type ErrorCode, errorCodes } from "./codes.ts";

/** A problem of an input field; `field` is its dotted path (specification 2.7). */
export interface FieldError {
  readonly field: string;
  readonly error: string;
}

/** Options of typed errors. */
export interface ErrorDetails {
  /** The error behind this one. Logged with its whole chain, never sent to a client. */
  readonly cause?: unknown;
  /** Headers of the response, such as `retry-after`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Options of errors that have a usual message. */
export interface MessageDetails extends ErrorDetails {
  /** Sent to the client in place of the usual message. The code stays. */
  readonly message?: string;
}

/** Present on every typed error, so that two copies of the package recognise each other's. */
export const errorBrand: unique symbol = Symbol.for("keelson.error") as never;

/**
 * An error with an HTTP status of its own, 400 to 599; the base of every typed error
 * (specification 7). Its message is sent to the client.
 *
 * @throws RangeError if the status is not a whole number from 400 to 599.
 * @example
 * throw new PipelineError("The archive is being rebuilt", 503);
 */
export class PipelineError extends Error {
  // Said, here and below, so that a bundler that shortens the names of classes does not shorten it in the log.
  static override readonly name: string = "PipelineError";
  /** The `error` member of the response body. */
  readonly code: string;
  /** The HTTP status. */
  readonly status: number;
  /** Headers of the response. */
  readonly headers: Readonly<Record<string, string>>;
  /** The status, as error handlers read it that follow `http-errors`, such as that of Middy. */
  declare readonly statusCode: number;
  /** Tells the same error handlers that the message may be sent: `true`, whatever the status. */
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
 * 404 `not_found`, "<resource> <id> not found": something does not exist, or the caller may not
 * know that it does (specification 7).
 *
 * @param details another message, or an object with it
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
 * @param details another message, or an object with it
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
 * 422 `validation_error`, "Validation failed": the input is invalid; `fields` says where
 * (specification 7).
 *
 * @param details another message, or an object with it
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
 * 409 with a code of yours, "Conflict: <code>": the state of a resource forbids the request (specification 7).
 *
 * @param details the message, or an object with it
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
 * An error of keelson's own: its status is that of its code in {@link errorCodes} (specification 7).
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

/** A member that no log line shows; it can be set, as by code that gave errors these members before they had them. */
function hidden(value: unknown): PropertyDescriptor {
  return { value, writable: true, configurable: true };
}

/** A text alone is the message. */
function detailsOf(details: MessageDetails | string): MessageDetails {
  return typeof details === "string" ? { message: details } : details;
}

/** Tells whether `error` is a typed error, of this copy of the package or of another. */
export function isTypedError(error: unknown): error is PipelineError {
  return (
    typeof error === "object" &&
    error !== null &&
    (error as Partial<PipelineError>)[errorBrand] === true
  );
}
