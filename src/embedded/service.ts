/**
 * One AWS service behind the embedded front server: the JSON protocol names the service and the
 * operation in `X-Amz-Target`.
 */
export interface AwsJsonService {
  /** What `X-Amz-Target` begins with, up to and including the dot: `DynamoDB_20120810.`. */
  readonly targetPrefix: string;
  /** Runs an operation; throws {@link ServiceError} for what the service itself would refuse. */
  call(operation: string, input: Readonly<Record<string, unknown>>): Promise<object>;
}

/** An error as an AWS JSON service answers it: `__type`, `message` and members of its own. */
export class ServiceError extends Error {
  /** The `__type` of the answer, with its namespace. */
  readonly type: string;
  /** The HTTP status. */
  readonly status: number;
  /** Further members of the answer, `CancellationReasons` for example. */
  readonly members: Readonly<Record<string, unknown>>;

  constructor(type: string, message: string, details: { status?: number; members?: Readonly<Record<string, unknown>> } = {}) {
    super(message);
    this.name = "ServiceError";
    this.type = type;
    this.status = details.status ?? 400;
    this.members = details.members ?? {};
  }
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
