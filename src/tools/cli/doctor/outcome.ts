import { missingAccount } from "../setup/account-problem.ts";

export interface Outcome {
  readonly status: "ok" | "warn" | "fail" | "skip";
  /** Never contains a secret. */
  readonly message: string;
  readonly fix: readonly string[];
}

export interface Check {
  readonly name: string;
  run(): Promise<Outcome>;
}

export const check = (name: string, run: Check["run"]): Check => ({ name, run });

const outcome =
  (status: Outcome["status"]) =>
  (message: string, ...fix: readonly string[]): Outcome => ({ status, message, fix });

export const fine = outcome("ok");
export const doubtful = outcome("warn");
export const wrong = outcome("fail");
export const unchecked = (why: string) => outcome("skip")(`not checked: ${why}`);

export interface Found<Thing> {
  readonly name: string;
  readonly find: () => Promise<Thing | undefined>;
}

export async function after<Thing>(
  { name, find }: Found<Thing>,
  look: (found: Thing) => Outcome | Promise<Outcome>,
): Promise<Outcome> {
  const found = await find().catch(() => undefined);
  return found === undefined ? unchecked(`see ${name}`) : look(found);
}

export function asked<Answer>(ask: () => Promise<Answer>): () => Promise<Answer> {
  let answer: Promise<Answer> | undefined;
  return () => {
    answer ??= ask();
    return answer;
  };
}

export function command(...words: readonly string[]): string {
  return words
    .map((word) => (bare.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(" ");
}

/** Excludes a leading `=`, because the Z shell expands `=word` to the path of a command. */
const bare = /^[\w.,:/@%+-][\w.,:=/@%+-]*$/;

export function keelson(...words: readonly string[]): string {
  return command("npx", "keelson", ...words);
}

export function createKeyRing(parameter = "/app/key-ring"): string {
  return keelson("key-ring", "create", "--parameter", parameter);
}

interface Call {
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

export function failureName(error: unknown): string {
  return error instanceof CallError ? rootOf(error.cause).name : "";
}

export async function unlessMissing<Found>(find: () => Promise<Found>): Promise<Found | undefined> {
  try {
    return await find();
  } catch (error) {
    if (/^ResourceNotFoundException$|QueueDoesNotExist|NonExistentQueue/.test(failureName(error)))
      return undefined;
    throw error;
  }
}

export function outcomeOf(error: unknown): Outcome {
  if (!(error instanceof CallError)) return wrong(`it cannot be checked: ${textOf(error)}`);
  const missing = missingAccount(error.cause);
  if (missing !== undefined) return unchecked(`see ${missing}`);
  const failure = rootOf(error.cause);
  const { service, operation, resource, shown, isEmulator } = error.call;
  if (isEmulator && isUnknown(failure)) return unchecked(`the emulator does not know ${operation}`);
  if (/^(AWS\.)?(AccessDenied|NotAuthorized|UnauthorizedOperation)/.test(failure.name)) {
    const action = `${service}:${operation}`;
    const message = `the credentials may not call ${action} on ${resource}`;
    return wrong(message, ...permission(action, failure.message));
  }
  if (refusedCredentials.test(failure.name)) {
    const message = `the credentials are refused: ${failure.name}`;
    return wrong(message, "aws sts get-caller-identity", "aws sso login");
  }
  const isLate = ["TimeoutError", "AbortError"].includes(failure.name);
  if (isLate || /^E[A-Z]{3,}/.test(failure.code ?? "")) {
    const why = isLate ? "not in time" : String(failure.code);
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
  // Safe cast: callers check members before use.
  return failure as Failure;
}

const refusedCredentials =
  /^(?:ExpiredToken(?:Exception)?|IncompleteSignature|InvalidClientTokenId|InvalidSignatureException|MissingAuthenticationTokenException|SignatureDoesNotMatch|UnrecognizedClientException)$/;

function isUnknown({ name, $metadata }: Failure) {
  return (
    /^Unknown(Operation|Action)|^InvalidAction$/.test(name) || $metadata?.httpStatusCode === 501
  );
}

/** Grants the action, if AWS's message names the caller and the resource. */
function permission(action: string, message: string) {
  const [, kind, name] = /:(?:sts|iam)::\d*:(assumed-role|user)\/([\w+=,.@-]+)/.exec(message) ?? [];
  const [, resource] = /on resource: (arn:[\w:/.*-]+)/.exec(message) ?? [];
  if (name === undefined || resource === undefined) return [];
  const who = kind === "user" ? "user" : "role";
  const Statement = [{ Effect: "Allow", Action: action, Resource: resource }];
  const document = JSON.stringify({ Version: "2012-10-17", Statement });
  const policy = `keelson-${action.replace(":", "-")}`;
  const options = ["--policy-name", policy, "--policy-document", document];
  return [command("aws", "iam", `put-${who}-policy`, `--${who}-name`, name, ...options)];
}

function textOf(error: unknown) {
  if (!(error instanceof Error)) return String(error);
  const message = error.message.slice(0, 300);
  return error.name === "Error" ? message : `${error.name}: ${message}`;
}
