import type { HandlerDeclaration } from "../declare/handler.ts";
import { isReply } from "../http/reply.ts";
import type { Environment } from "../process/environment.ts";

/**
 * Gives a result as it is; outside production it is held against the `output` schema of its handler.
 *
 * @throws Error where it does not fit, naming the handler and the paths.
 */
export function checkOutput(declaration: HandlerDeclaration, result: unknown, environment: Environment): unknown {
  return declaration.output === undefined || environment === "production" ? result : checked(declaration, result);
}

async function checked(declaration: HandlerDeclaration, returned: unknown): Promise<unknown> {
  const result = await returned;
  const value = isReply(result) ? result.body : result;
  const outcome = await declaration.output?.["~standard"].validate(value);
  if (outcome?.issues === undefined) return result;
  const problems = outcome.issues.slice(0, 10).map(({ path = [], message }) => {
    const dotted = path.map((part) => String(typeof part === "object" ? part.key : part)).join(".");
    return dotted === "" ? message : `${dotted}: ${message}`;
  });
  throw new Error(
    `${declaration.name}: the result does not fit its output schema (${problems.join("; ")}); mend the handler or the schema`,
  );
}
