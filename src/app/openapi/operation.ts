import { type AccessRule, describeRule, needsIdentity } from "../../base/identity/access.ts";
import type { DeclaredServer } from "../registry/declared-server.ts";
import { answersOf } from "./answers.ts";
import type { Components } from "./components.ts";
import type { DeclaredOperation } from "./declared-operation.ts";
import { type ErrorAnswers, errorsOf } from "./error-answers.ts";
import { requestHeaders } from "./request-headers.ts";
import { requestOf } from "./request-parts.ts";

export function operationOf(
  operation: DeclaredOperation,
  components: Components,
  server: DeclaredServer,
  errors: ErrorAnswers,
) {
  const { handler, own } = operation;
  const { parameters, requestBody } = requestOf(operation, components);
  // Safe cast: boot refuses a route without an access rule.
  const rule = handler.access as AccessRule;
  return {
    operationId: handler.name,
    summary: own?.summary ?? summaryOf(handler.name),
    description: own?.description ?? `Who may call it: ${describeRule(rule)}.`,
    tags: [handler.feature],
    // A public route accepts a token but does not require one.
    security: needsIdentity(rule) ? [{ bearer: [] }] : [{}, { bearer: [] }],
    "x-keelson-access": describeRule(rule),
    parameters: [...parameters, ...requestHeaders(handler, server.options)],
    ...(requestBody && { requestBody }),
    responses: {
      ...answersOf(operation, components, server.options),
      ...errorsOf(operation, server, errors),
    },
  };
}

function summaryOf(name: string): string {
  const words = name
    .slice(name.indexOf(".") + 1)
    .replaceAll("-", " ")
    .replace(".", ": ");
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`;
}
