import type { HandlerDeclaration } from "../declare/handler.ts";
import type { PipelineContext } from "../declare/pipeline-context.ts";
import { validateInput } from "../http/input.ts";
import { isReply } from "../http/reply.ts";
import type { Environment } from "../process/environment.ts";

/**
 * Runs a handler on input that its schema accepted, and returns its result or a promise of it; outside
 * production what it returns is held against its `output` schema.
 *
 * @throws what the handler throws, and Error where the result does not fit the schema, naming the handler and the paths.
 */
export function invoke(declaration: HandlerDeclaration, ctx: PipelineContext, input: unknown, environment: Environment): unknown {
  return checkOutput(declaration, declaration.run(ctx, input), environment);
}

/** Validates the input of a handler. A handler without a schema takes it as it is. */
export function acceptInput(declaration: HandlerDeclaration, input: unknown): unknown {
  return validateInput(declaration.input, input);
}

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
