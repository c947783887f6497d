import { type ErrorCode, errorCodes } from "./error-codes.ts";

/** A problem with an input field. `field` is its dotted path (specification 2.7). */
export interface FieldError {
  readonly field: string;
  readonly error: string;
}

/** Details of a typed error. */
export interface ErrorDetails {
  /** Underlying error. Logged with all its causes, never sent to a client. */
  readonly cause?: unknown;
  /** Headers of the response, such as `retry-after`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Details of a typed error that writes its message itself. */
export interface MessageDetails extends ErrorDetails {
  /** Message instead of the default message. The code does not change. */
  readonly message?: string;
}

/** Symbol by which two copies of the package recognize each other's errors. */
export const errorBrand: unique symbol = Symbol.for("keelson.error") as never;

/**
 * Base class of typed errors, whose message is sent to the client (specification 7).
 * @throws RangeError if the status is not a whole number from 400 to 599.
 * @example
 * throw new PipelineError("The archive is being rebuilt", 503);
 */
export class PipelineError extends Error {
  // Every error class sets its name, because bundlers may shorten class names.
  static override readonly name: string = "PipelineError";
  /** Error code, sent as the `error` member of the response body. */
  readonly code: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Status for error handlers that follow `http-errors`, such as Middy's. */
  declare readonly statusCode: number;
  /** Always `true`: error handlers such as Middy's may send the message. */
  declare readonly expose: boolean;

  constructor(
    message: string,
    status: number,
    details: ErrorDetails & { readonly code?: string } = {},
  ) {
    super(message, "cause" in details ? { cause: details.cause } : undefined);
    if (!Number.isInteger(status) || status < 400 || status > 599) {
      const problem = `status ${status} is not a whole number from 400 to 599 (message: ${message})`;
      throw new RangeError(`PipelineError: ${problem}`, { cause: this });
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
 * 404 `not_found`: a resource does not exist, or the caller must not learn that it exists
 * (specification 7). Default message: "<resource> <id> not found".
 * @example
 * throw new NotFoundError("file", input.id);
 */
export class NotFoundError extends PipelineError {
  static override readonly name: string = "NotFoundError";
  constructor(resource: string, id: string, details: MessageDetails | string = {}) {
    super(...coded("not_found", errorCodes.not_found, `${resource} ${id} not found`, details));
  }
}

/**
 * 403 `access_denied`: the caller lacks a permission (specification 7). Default
 * message: "Access denied: <permission>".
 * @example
 * throw new AccessDeniedError("files.delete");
 */
export class AccessDeniedError extends PipelineError {
  static override readonly name: string = "AccessDeniedError";
  constructor(permission: string, details: MessageDetails | string = {}) {
    const message = `Access denied: ${permission}`;
    super(...coded("access_denied", errorCodes.access_denied, message, details));
  }
}

/**
 * 422 `validation_error`: the input is invalid (specification 7). Default message:
 * "Validation failed".
 * @example
 * throw new ValidationError([{ field: "sizeMb", error: "must be at most 10" }]);
 */
export class ValidationError extends PipelineError {
  static override readonly name: string = "ValidationError";
  /** Invalid fields, each with one problem. */
  readonly fields: readonly FieldError[];

  constructor(fields: readonly FieldError[], details: MessageDetails | string = {}) {
    const status = errorCodes.validation_error;
    super(...coded("validation_error", status, "Validation failed", details));
    this.fields = fields.map(({ field, error }) => ({ field, error }));
  }
}

/**
 * 409 with a code of the application: the state of a resource forbids the request (specification
 * 7). Default message: "Conflict: <code>".
 * @example
 * throw new ConflictError("file_locked", "Ann is editing the file");
 */
export class ConflictError extends PipelineError {
  static override readonly name: string = "ConflictError";
  constructor(conflictCode: string, details: MessageDetails | string = {}) {
    super(...coded(conflictCode, 409, `Conflict: ${conflictCode}`, details));
  }
}

/**
 * Error of keelson itself. Its code determines the status: {@link errorCodes} (specification 7).
 * @example
 * if (error instanceof FrameworkError && error.code === "config_unavailable") retryLater();
 */
export class FrameworkError extends PipelineError {
  static override readonly name: string = "FrameworkError";
  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, errorCodes[code], { ...details, code });
  }
}

/** Thrown by `ctx.commit` if a condition fails (409 `condition_failed`); nothing is written. */
export class CommitConditionError extends ConflictError {
  /** Index of the item whose condition failed, from 0. */
  readonly index: number;
  /** DynamoDB's message for the failed condition. */
  readonly reason: string;

  constructor(index: number, reason: string) {
    super("condition_failed");
    this.name = "CommitConditionError";
    this.index = index;
    this.reason = reason;
  }
}

/** Like {@link errorBrand}, of permanent errors. */
export const permanentBrand: unique symbol = Symbol.for("keelson.permanent-error") as never;

/**
 * Thrown by a consumer, a job or a channel if a retry is pointless: the message goes to the
 * dead-letter queue immediately.
 * @example
 * throw new PermanentError("the account is closed");
 */
export class PermanentError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "PermanentError";
  }

  get [permanentBrand](): true {
    return true;
  }
}

export function isPermanent(error: unknown): error is PermanentError {
  return (
    typeof error === "object" &&
    error !== null &&
    (error as { readonly [permanentBrand]?: unknown })[permanentBrand] === true
  );
}

/**
 * 409 `unknown_outcome`, thrown by `ctx.step` with `ifUnknown: "refuse"`: an earlier run started
 * the step, and its outcome is unknown until an operator resolves it (`keelson steps resolve`). The
 * error is permanent, so a message or a scheduled run goes straight to the dead-letter queue.
 */
export class UnknownOutcomeError extends PipelineError {
  static override readonly name: string = "UnknownOutcomeError";
  readonly step: string;
  /** Key of the step, which `keelson steps resolve` takes as its ID. */
  readonly key: string;

  constructor(step: string, key: string) {
    const message = `It is not known whether the step ${step} was done; it is not done again before that is resolved (${key})`;
    super(message, errorCodes.unknown_outcome, { code: "unknown_outcome" });
    this.step = step;
    this.key = key;
  }

  get [permanentBrand](): true {
    return true;
  }
}

/** For members that log lines omit. Writable, because older code sets them. */
function hidden(value: unknown): PropertyDescriptor {
  return { value, writable: true, configurable: true };
}

function coded(code: string, status: number, otherwise: string, details: MessageDetails | string) {
  const { message = otherwise, ...rest } =
    typeof details === "string" ? { message: details } : details;
  return [message, status, { ...rest, code }] as const;
}

/** Whether `error` is a typed error, from this copy of the package or another. */
export function isTypedError(error: unknown): error is PipelineError {
  return (
    typeof error === "object" &&
    error !== null &&
    (error as Partial<PipelineError>)[errorBrand] === true
  );
}

/** Returns a Node error's code, such as `ENOENT`. No `instanceof`, as Jest has another `Error`. */
export function systemCode(error: unknown): unknown {
  return typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
}
