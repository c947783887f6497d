import { IdempotencyConfig, IdempotencyItemAlreadyExistsError, makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { BasePersistenceLayer, IdempotencyRecord } from "@aws-lambda-powertools/idempotency/persistence";
import { leaseMs } from "./claim.ts";

/** What the engine asks of one claim. */
export interface ClaimSteps {
  /** Takes the claim; `false` where the work is done already. */
  take(): Promise<boolean>;
  /** Does the work; it never throws: whoever made the steps keeps the outcome. */
  work(): Promise<void>;
  /** Completes the claim, or releases it. */
  settle(): Promise<void>;
}

/** Runs claims through Powertools' engine. */
export interface ClaimEngine {
  /** @throws whatever `take` or `settle` throws, as it was thrown. */
  run(steps: ClaimSteps): Promise<void>;
}

/** As many layers as are kept for the next claims. */
const maxIdle = 64;

/**
 * Creates an engine. A layer serves one claim at a time, so that nothing is shared; to make one for each is a tenth of
 * what a claim costs (`write-cpu` in `bench/results.json`). Since `work` never throws, the engine neither releases nor
 * runs anything a second time.
 */
export function createClaimEngine(): ClaimEngine {
  const idle: { readonly layer: WriteClaimLayer; readonly run: () => Promise<void> }[] = [];
  const create = () => {
    const layer = new WriteClaimLayer();
    return { layer, run: makeIdempotent(() => layer.steps.work(), { persistenceStore: layer, config: configuration }) };
  };
  return {
    run: async (steps) => {
      const one = idle.pop() ?? create();
      const { layer } = one;
      layer.steps = steps;
      try {
        await one.run();
      } catch {
        // Safe: the engine throws where a step has thrown, and only there.
        throw (layer.failure as NonNullable<typeof layer.failure>).error;
      } finally {
        layer.steps = nothing;
        layer.failure = undefined;
        if (idle.length < maxIdle) idle.push(one);
      }
    },
  };
}

/* v8 ignore next 5 -- the steps of a layer that serves nobody */
const nothing: ClaimSteps = {
  take: () => Promise.reject(new Error("no claim")),
  work: () => Promise.reject(new Error("no claim")),
  settle: () => Promise.reject(new Error("no claim")),
};

/** The lease is ours, kept on the server's clock; the engine only wants to be told that there is one. */
const configuration = new IdempotencyConfig({});
configuration.registerLambdaContext({ getRemainingTimeInMillis: () => leaseMs } as never); // safe: nothing else is read of it

/** The persistence of one claim: its key and its outcome are known, and nothing is computed anew. */
class WriteClaimLayer extends BasePersistenceLayer {
  /** What a step threw: the engine wraps it in an error of its own. */
  failure: { readonly error: unknown } | undefined;
  steps = nothing;

  override configure(): void {
    // There is nothing to configure: a shared layer's options were where two invocations met.
  }

  protected override getHashedIdempotencyKey(): string {
    return "claim";
  }

  override processExistingRecord(record: IdempotencyRecord): IdempotencyRecord {
    return record;
  }

  protected override async _putRecord(): Promise<void> {
    const isTaken = await this.#run(() => this.steps.take());
    // Without an expiry: whether it has one is judged by the server's clock, not the engine's.
    if (!isTaken) {
      throw new IdempotencyItemAlreadyExistsError(
        "done",
        new IdempotencyRecord({ idempotencyKey: "claim", status: "COMPLETED" }),
      );
    }
  }

  protected override async _updateRecord(): Promise<void> {
    await this.#run(() => this.steps.settle());
  }

  /* v8 ignore next 3 -- the work never throws, so the engine releases nothing */
  protected override async _deleteRecord(): Promise<void> {
    throw new Error("a claim is released by its settling");
  }

  /* v8 ignore next 3 -- what exists comes with the error that says so */
  protected override async _getRecord(): Promise<IdempotencyRecord> {
    throw new Error("a claim is read by its taking");
  }

  async #run<Result>(step: () => Promise<Result>): Promise<Result> {
    try {
      return await step();
    } catch (error) {
      this.failure = { error };
      throw new Error("a step failed", { cause: error });
    }
  }
}
