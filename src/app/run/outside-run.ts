import { errorLog } from "../../base/errors/describe.ts";
import { quoted } from "../../base/errors/quoted.ts";
import { isIdentifier, type User } from "../../base/identity/access.ts";
import { parseRoles } from "../../base/identity/authenticator.ts";
import { noAnswer, type WriteAnswer } from "../../parts/once/answer.ts";
import { type ClaimKey, claimKey } from "../../parts/once/claim.ts";
import { run } from "../ctx/run.ts";
import type { Awaitable } from "../handlers/handler.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { RunOptions } from "../registry/options.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { adoptRequestId, type RequestScope, runInMessageScope } from "../runtime/scope.ts";
import { assertActive } from "./active-tenant.ts";
import { causeOf } from "./write.ts";

const handler = "keelson.server.run";

export interface OutsideRun<Result> {
  readonly options: RunOptions;
  readonly signal: AbortSignal;
  /** Of the request or the message that the run is part of. */
  readonly deadlineMs?: number | undefined;
  /** An operator's command also runs for a suspended tenant. */
  readonly isOperator?: boolean;
  work(ctx: PipelineContext): Awaitable<Result>;
}

/**
 * Runs the work of `server.run`, with a claim if the options contain a request ID.
 *
 * @throws any error of the work; FrameworkError `request_in_progress` if a run with the same ID
 * takes too long; the errors of {@link assertActive}.
 */
export async function runOutside<Result>(
  runtime: Runtime,
  { options, signal, deadlineMs, isOperator, work }: OutsideRun<Result>,
): Promise<Result | undefined> {
  const { reason, userId: id, tenantId, roles = [] } = options;
  const requestId = options.requestId ?? runtime.newRequestId();
  const names = Object.freeze([...new Set(roles)]);
  const user: User = Object.freeze({ id, tenantId, roles: names, kind: "user" });
  const facts = {
    requestId,
    user,
    handler,
    deadlineMs,
    isSystem: tenantId === undefined,
    logFields: {},
    signal,
  };
  return runInMessageScope(runtime, facts, async (scope) => {
    scope.log.info("run.started", { reason });
    try {
      await (isOperator ? undefined : assertActive(scope));
      const result = await performed(scope, options.requestId, work);
      runtime.observer?.ended(scope, { kind: "run", outcome: "processed" });
      return result;
    } catch (error) {
      const { level, data } = errorLog(error);
      scope.log[level]("run.failed", { reason, ...data });
      runtime.observer?.ended(scope, { kind: "run", outcome: "failed", error });
      throw error;
    }
  });
}

async function performed<Result>(
  scope: RequestScope,
  claimedBy: string | undefined,
  work: OutsideRun<Result>["work"],
): Promise<Result | undefined> {
  const isClaimed = claimedBy !== undefined;
  // Without a claim the caller gets the result itself, not its JSON round trip.
  const results = new Map<WriteAnswer, unknown>();
  const answerOf = (result: unknown): WriteAnswer => {
    const answer = isClaimed ? jsonAnswer(result) : { ...noAnswer };
    results.set(answer, result);
    return answer;
  };
  const ended = await run<Result>(scope, await scope.runtime.adapters.open(), {
    logPrefix: "once",
    claim: isClaimed
      ? {
          kind: "write",
          key: keyOf(scope.user, claimedBy),
          replayedHeaders: [],
          deadlineMs: scope.deadlineMs,
        }
      : undefined,
    cause: causeOf(scope),
    handle: async (ctx) => {
      const result = await work(ctx);
      // Before the run is recorded as done: a result that is not JSON cannot be replayed.
      answerOf(result);
      return result;
    },
    answerOf,
    committing: (result) => ({ result, answer: answerOf(result) }),
  });
  if (ended.kind === "done" && !isClaimed) return ended.result;
  // The casts are safe: a claimed or committed run has the answer of a result of this type.
  const { answer } = ended as { readonly answer: WriteAnswer };
  return (isClaimed ? parsed(answer) : results.get(answer)) as Result;
}

function keyOf({ tenantId, id }: User, requestId: string): ClaimKey {
  return claimKey(
    ["run", ...[tenantId, id].map((name) => (name === undefined ? "-" : `=${name}`))],
    requestId,
    tenantId,
  );
}

function jsonAnswer(result: unknown): WriteAnswer {
  const body = result === undefined ? undefined : JSON.stringify(result);
  if (result !== undefined && body === undefined) {
    throw new TypeError(
      `server.run: the result is a ${typeof result}, which JSON does not have; return plain data, or nothing`,
    );
  }
  return { ...noAnswer, body };
}

function parsed({ body }: WriteAnswer): unknown {
  return body === undefined ? undefined : JSON.parse(String(body));
}

const known: readonly string[] = [
  "reason",
  "tenantId",
  "userId",
  "roles",
  "requestId",
] satisfies readonly (keyof RunOptions)[];
/** Maximum number of characters. */
export const longestReason = 500;

/** Checks the options of `server.run`. @throws TypeError with the name and value of an option. */
export function checkRunOptions(options: RunOptions): void {
  const fail = (problem: string) => {
    throw new TypeError(`server.run: ${problem}`);
  };
  if (typeof options !== "object" || options === null)
    fail("the first argument is not an object; pass { reason: ... }");
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined)
    fail(`unknown option ${quoted(unknown)}; known are ${known.join(", ")}`);
  const { reason, tenantId, userId, roles = [], requestId } = options;
  if (typeof reason !== "string" || reason.trim() === "" || reason.length > longestReason) {
    fail(
      `the reason is ${quoted(reason)}; give the purpose of the run as a string of at most ${longestReason} characters`,
    );
  }
  if (tenantId !== undefined && !isIdentifier(tenantId))
    fail(`tenantId is ${quoted(tenantId)}; use a string, or leave it out`);
  if (userId !== undefined && !isIdentifier(userId))
    fail(`userId is ${quoted(userId)}; use a string, or leave it out`);
  if (userId !== undefined && tenantId === undefined)
    fail("a user belongs to a tenant; pass tenantId as well");
  if (!Array.isArray(roles) || parseRoles(roles) === undefined)
    fail("roles is not a list of at most 100 names");
  if (requestId === undefined) return;
  if (
    typeof requestId !== "string" ||
    adoptRequestId(requestId, () => "").rejectedLength !== undefined
  ) {
    fail(
      `requestId is ${quoted(requestId)}; use 1 to 128 characters of A-Z a-z 0-9 . _ : = + / @ -`,
    );
  }
}
