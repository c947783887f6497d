/** AWS service. The JSON protocol names it and the operation in `X-Amz-Target`. */
export interface AwsJsonService {
  /** Prefix of `X-Amz-Target` with the dot: `DynamoDB_20120810.`. */
  readonly targetPrefix: string;
  /**
   * Throws {@link ServiceError} where AWS rejects a request. Direct callers can omit a `context`
   * that the service does not use.
   */
  call(operation: string, input: Input, context?: CallContext): Promise<object>;
}

/** Unvalidated input of an operation. */
export type Input = Readonly<Record<string, unknown>>;

export interface CallContext {
  /** Epoch milliseconds of the caller's clock, which a test may shift. */
  readonly nowMs: number;
  /** As the caller used it: `http://127.0.0.1:4566`. */
  readonly endpoint: string;
  readonly signal: AbortSignal;
}

export class ServiceError extends Error {
  readonly type: string;
  readonly status: number;
  /** Further members, for example `CancellationReasons`. */
  readonly members: Input;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    type: string,
    message: string,
    {
      status = 400,
      members = {},
      headers = {},
    }: Partial<Pick<ServiceError, "status" | "members" | "headers">> = {},
  ) {
    super(message);
    this.name = "ServiceError";
    this.type = type;
    this.status = status;
    this.members = members;
    this.headers = headers;
  }
}

export function unknownOperation(operation: string): ServiceError {
  return new ServiceError(
    "com.amazon.coral.service#UnknownOperationException",
    `The embedded stack has no operation ${JSON.stringify(operation.slice(0, 100))}`,
  );
}

export function serializationError(message: string): ServiceError {
  return new ServiceError("com.amazon.coral.service#SerializationException", message);
}
