import { answerCipher } from "../../parts/once/answer.ts";
import type { ClaimKey } from "../../parts/once/claim.ts";
import type { HeldRun } from "../../parts/once/claimed-run.ts";
import { Steps } from "../../parts/once/steps.ts";
import { onceTable } from "../handlers/table.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { RunServices } from "../runtime/run-services.ts";
import type { RequestScope } from "../runtime/scope.ts";

export async function openSteps(
  scope: RequestScope,
  adapters: Adapters,
  runs: RunServices,
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
    cipherOf,
    // Results of steps are encrypted if the write's answer is.
    isSealed: wanted.cipher !== undefined,
  });
}
