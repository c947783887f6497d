import { errorCodes } from "./codes.ts";
import { PipelineError } from "./errors.ts";
import { permanentBrand } from "./permanent-error.ts";

/**
 * 409 `unknown_outcome`, thrown by `ctx.step` with `ifUnknown: "refuse"`: an earlier run started
 * the step, and its outcome is unknown until an operator resolves it (`keelson steps resolve`). The
 * error is permanent, so a message or a scheduled run goes straight to the dead-letter queue.
 */
export class UnknownOutcomeError extends PipelineError {
  static override readonly name: string = "UnknownOutcomeError";
  readonly step: string;
  /** Key of the step, which `keelson steps resolve` takes as its ID. */
  readonly key: string;

  constructor(step: string, key: string) {
    const message = `It is not known whether the step ${step} was done; it is not done again before that is resolved (${key})`;
    super(message, errorCodes.unknown_outcome, { code: "unknown_outcome" });
    this.step = step;
    this.key = key;
  }

  get [permanentBrand](): true {
    return true;
  }
}
