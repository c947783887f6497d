import { onceTable } from "../declare/table.ts";
import { answerCipher } from "../once/answer-cipher.ts";
import type { ClaimKey } from "../once/claim.ts";
import type { HeldRun } from "../once/once-run.ts";
import { Steps } from "../once/steps.ts";
import type { Adapters } from "./adapters.ts";
import type { Runs } from "./runs.ts";
import type { RequestScope } from "./scope.ts";

/** Opens the steps of one run. */
export async function openSteps(
  scope: RequestScope,
  adapters: Adapters,
  runs: Runs,
  { claim, wanted }: HeldRun,
): Promise<Steps> {
  const { runtime, requestId, handler = "", log, runSignal } = scope;
  const cipherOf = ({ partition, sort }: ClaimKey) =>
    answerCipher(runtime.secrets, [runtime.tableName(onceTable.name), partition, sort]);
  return new Steps({
    store: await adapters.steps.open(),
    claims: adapters.claims,
    claim,
    clock: runtime.clock,
    log,
    metrics: runtime.metrics,
    pause: runs.once.pause,
    signal: runSignal,
    facts: { handler, requestId },
    keepMs: wanted.kind === "write" ? wanted.retentionMs : undefined,
    // As the answer of the write.
    cipherOf: wanted.cipher === undefined ? undefined : cipherOf,
  });
}
