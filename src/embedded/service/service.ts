import { isRecord } from "../../base/errors/option-table.ts";

/** Of the JSON protocol, whose `X-Amz-Target` names the service and the operation. */
export interface AwsJsonService {
  /** Including the dot: `DynamoDB_20120810.`. */
  readonly targetPrefix: string;
  /** @throws ServiceError where AWS rejects a request. */
  call(operation: string, input: Input, context: CallContext): Promise<object>;
}

export type Input = Readonly<Record<string, unknown>>;

export interface CallContext {
  /** Epoch milliseconds, which a test may shift. */
  readonly nowMs: number;
  /** As the caller used it: `http://127.0.0.1:4566`. */
  readonly endpoint: string;
  readonly signal: AbortSignal;
}

export type Operation<Scope> = (
  scope: Scope,
  input: Input,
  context: CallContext,
) => object | Promise<object>;

export type Operations<Scope> = Readonly<Record<string, Operation<Scope>>>;

export function operationOf<Run>(operations: Readonly<Record<string, Run>>, name: string) {
  const operation = Object.hasOwn(operations, name) ? operations[name] : undefined;
  if (operation === undefined) throw unknownOperation(name);
  return operation;
}

/** `refuse` creates the error for a `wrong` value or a missing text. */
export function textReader(refuse: (member: string, wrong?: unknown) => ServiceError) {
  const optionalText = (input: Input, member: string) => {
    const value = input[member] ?? undefined;
    if (value === undefined || typeof value === "string") return value;
    throw refuse(member, value);
  };
  const text = (input: Input, member: string) => {
    const value = optionalText(input, member);
    if (!value) throw refuse(member);
    return value;
  };
  return { optionalText, text };
}

export class ServiceError extends Error {
  readonly type: string;
  readonly status: number;
  /** Of the response, for example `CancellationReasons`. */
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

export function unknownOperation(operation: string) {
  return new ServiceError(
    "com.amazon.coral.service#UnknownOperationException",
    `The embedded stack has no operation ${JSON.stringify(operation.slice(0, 100))}`,
  );
}

export function serializationError(message: string) {
  return new ServiceError("com.amazon.coral.service#SerializationException", message);
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function byName(one: { readonly name: string }, other: { readonly name: string }) {
  return one.name < other.name ? -1 : 1;
}

export function validationError(message: string) {
  return new ServiceError("com.amazon.coral.validate#ValidationException", message);
}

export function detected(problem: string) {
  return validationError(`1 validation error detected: ${problem}`);
}

export function invalidMember(value: string | null, path: string, constraint: string) {
  const shown = value === null ? "null" : `'${value}'`;
  return detected(
    `Value ${shown} at '${path}' failed to satisfy constraint: Member must ${constraint}`,
  );
}

export function missingMember(path: string) {
  return invalidMember(null, path, "not be null");
}

export function dynamoDbError(name: string, message: string, members: Input = {}) {
  return new ServiceError(`com.amazonaws.dynamodb.v20120810#${name}`, message, { members });
}

export function asStructure(value: unknown, path: string) {
  if (!isRecord(value)) throw missingMember(path);
  return value;
}
