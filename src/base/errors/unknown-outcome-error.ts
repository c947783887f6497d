import { errorCodes } from "./codes.ts";
import { PipelineError } from "./errors.ts";
import { permanentBrand } from "./permanent-error.ts";

/**
 * 409 `unknown_outcome`: a step was begun before, and how it ended is not known. `ctx.step` throws it with
 * `ifUnknown: "refuse"`, until somebody says how it ended (`keelson steps resolve`). In a consumer, a job or a schedule it is
 * permanent: the message goes to the dead-letter queue at once.
 */
export class UnknownOutcomeError extends PipelineError {
  static override readonly name: string = "UnknownOutcomeError";
  /** The name of the step. */
  readonly step: string;
  /** The step's key, which is its ID for `keelson steps resolve`. */
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
