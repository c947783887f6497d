/**
 * AWS service behind the embedded front server. The JSON protocol names the service and the
 * operation in `X-Amz-Target`.
 */
export interface AwsJsonService {
  /** Prefix of `X-Amz-Target` up to and including the dot: `DynamoDB_20120810.`. */
  readonly targetPrefix: string;
  /**
   * Runs an operation. Throws {@link ServiceError} for requests that the AWS service would reject.
   * The front server always passes `context`; direct callers can omit it if the service does not
   * use it.
   */
  call(
    operation: string,
    input: Readonly<Record<string, unknown>>,
    context?: CallContext,
  ): Promise<object>;
}

/** Origin of a call. */
export interface CallContext {
  /** Epoch milliseconds by the caller's clock, which a test may shift. */
  readonly nowMs: number;
  /** Address that the caller used: `http://127.0.0.1:4566`. */
  readonly endpoint: string;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

/** Error response of an AWS JSON service. */
export class ServiceError extends Error {
  /** `__type` of the response, with its namespace. */
  readonly type: string;
  readonly status: number;
  /** Further members of the response, for example `CancellationReasons`. */
  readonly members: Readonly<Record<string, unknown>>;
  /** Further headers of the response. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(type: string, message: string, details: ServiceErrorDetails = {}) {
    super(message);
    this.name = "ServiceError";
    this.type = type;
    this.status = details.status ?? 400;
    this.members = details.members ?? {};
    this.headers = details.headers ?? {};
  }
}

export interface ServiceErrorDetails {
  /** Default 400. */
  readonly status?: number;
  readonly members?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

export function unknownOperation(operation: string): ServiceError {
  return new ServiceError(
    "com.amazon.coral.service#UnknownOperationException",
    `The embedded stack has no operation ${JSON.stringify(operation.slice(0, 100))}`,
  );
}

/** Creates the error for input that does not have the shape of the protocol. */
export function serializationError(message: string): ServiceError {
  return new ServiceError("com.amazon.coral.service#SerializationException", message);
}
