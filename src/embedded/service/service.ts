/**
 * One AWS service behind the embedded front server: the JSON protocol names the service and the
 * operation in `X-Amz-Target`.
 */
export interface AwsJsonService {
  /** What `X-Amz-Target` begins with, up to and including the dot: `DynamoDB_20120810.`. */
  readonly targetPrefix: string;
  /**
   * Runs an operation; throws {@link ServiceError} for what the service itself would refuse. The front
   * server always says where the call comes from; a service that does not look at it can go without.
   */
  call(
    operation: string,
    input: Readonly<Record<string, unknown>>,
    context?: CallContext,
  ): Promise<object>;
}

/** Where a call comes from. */
export interface CallContext {
  /** Epoch milliseconds by the caller's clock, which a test may have moved. */
  readonly nowMs: number;
  /** The address that the caller used: `http://127.0.0.1:4566`. */
  readonly endpoint: string;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

/** An error as an AWS JSON service answers it: `__type`, `message` and members of its own. */
export class ServiceError extends Error {
  /** The `__type` of the answer, with its namespace. */
  readonly type: string;
  /** The HTTP status. */
  readonly status: number;
  /** Further members of the answer, `CancellationReasons` for example. */
  readonly members: Readonly<Record<string, unknown>>;
  /** Further headers of the answer. */
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

/** What an error may have beside its type and its message. */
export interface ServiceErrorDetails {
  /** Default 400. */
  readonly status?: number;
  readonly members?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The answer to an operation that a service does not know. */
export function unknownOperation(operation: string): ServiceError {
  return new ServiceError(
    "com.amazon.coral.service#UnknownOperationException",
    `The embedded stack has no operation ${JSON.stringify(operation.slice(0, 100))}`,
  );
}

/** The answer to input that is not of the shape the protocol asks for. */
export function serializationError(message: string): ServiceError {
  return new ServiceError("com.amazon.coral.service#SerializationException", message);
}
