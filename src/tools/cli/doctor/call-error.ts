import { command } from "./command-line.ts";
import { type Outcome, unchecked, wrong } from "./outcome.ts";

export interface Call {
  readonly service: string;
  readonly operation: string;
  readonly resource: string;
  readonly shown: string;
  readonly isEmulator: boolean;
}

export class CallError extends Error {
  override readonly name = "CallError";
  readonly call: Call;

  constructor(call: Call, cause: unknown) {
    super(`${call.service} ${call.operation} failed`, { cause });
    this.call = call;
  }
}

export function failureName(error: unknown): string | undefined {
  return error instanceof CallError ? rootOf(error.cause).name : undefined;
}

export function outcomeOf(error: unknown): Outcome {
  if (!(error instanceof CallError)) return wrong(`it cannot be checked: ${textOf(error)}`);
  const { call } = error;
  const failure = rootOf(error.cause);
  const { service, operation, resource, shown, isEmulator } = call;
  if (isEmulator && isUnknown(failure)) return unchecked(`the emulator does not know ${operation}`);
  if (isDenied(failure)) {
    const action = `${service}:${operation}`;
    const fix = permission(action, failure.message);
    return wrong(
      `the credentials may not call ${action} on ${resource}`,
      ...(fix === undefined ? [] : [fix]),
    );
  }
  if (refusedCredentials.has(failure.name) || failure.name.startsWith("CredentialsProvider")) {
    return wrong(
      `the credentials are refused: ${failure.name}`,
      "aws sts get-caller-identity",
      "aws sso login",
    );
  }
  if (isUnreachable(failure)) {
    const why = isLate(failure) ? "not in time" : String(failure.code);
    const message = `${shown} does not answer (${why})`;
    if (!shown.includes("://")) return wrong(message);
    return wrong(
      `${message}; start it, or name another endpoint in AWS_ENDPOINT_URL`,
      command("curl", "--head", shown),
    );
  }
  return wrong(`${service} ${operation} of ${resource} failed: ${textOf(failure)}`);
}

interface Failure extends Error {
  readonly code?: string;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

function rootOf(error: unknown): Failure {
  let failure = error instanceof Error ? error : new Error(String(error));
  while (failure.cause instanceof Error && !("$metadata" in failure)) failure = failure.cause;
  // Safe: callers check the members before they use them.
  return failure as Failure;
}

const refusedCredentials: ReadonlySet<string> = new Set([
  "ExpiredToken",
  "ExpiredTokenException",
  "IncompleteSignature",
  "InvalidClientTokenId",
  "InvalidSignatureException",
  "MissingAuthenticationTokenException",
  "SignatureDoesNotMatch",
  "UnrecognizedClientException",
]);

function isUnknown({ name, $metadata }: Failure): boolean {
  return (
    /^Unknown(Operation|Action)/.test(name) ||
    name === "InvalidAction" ||
    $metadata?.httpStatusCode === 501
  );
}

function isDenied({ name }: Failure): boolean {
  return /^(AWS\.)?(AccessDenied|NotAuthorized|UnauthorizedOperation)/.test(name);
}

function isUnreachable(failure: Failure): boolean {
  return isLate(failure) || /^E[A-Z]{3,}/.test(failure.code ?? "");
}

function isLate({ name }: Failure): boolean {
  return ["TimeoutError", "AbortError"].includes(name);
}

/** Only if AWS's message names the caller and the resource. */
function permission(action: string, message: string): string | undefined {
  const [, kind, name] = /:(?:sts|iam)::\d*:(assumed-role|user)\/([\w+=,.@-]+)/.exec(message) ?? [];
  const [, resource] = /on resource: (arn:[\w:/.*-]+)/.exec(message) ?? [];
  if (name === undefined || resource === undefined) return undefined;
  const [verb, option] =
    kind === "user" ? ["put-user-policy", "--user-name"] : ["put-role-policy", "--role-name"];
  const Statement = [{ Effect: "Allow", Action: action, Resource: resource }];
  const document = JSON.stringify({ Version: "2012-10-17", Statement });
  const policy = `keelson-${action.replace(":", "-")}`;
  return command(
    "aws",
    "iam",
    verb,
    option,
    name,
    "--policy-name",
    policy,
    "--policy-document",
    document,
  );
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.name === "Error"
    ? error.message.slice(0, 300)
    : `${error.name}: ${error.message.slice(0, 300)}`;
}
