import type { Cause } from "../../parts/messages/envelope.ts";
import type { Steps } from "../../parts/once/steps.ts";
import type { StepOptions } from "../handlers/effect-options.ts";
import type { Effects } from "../handlers/effects.ts";
import { deliver } from "./deliver.ts";
import type { EffectCaller } from "./effect-ledger.ts";
import type { EffectRun } from "./effect-run.ts";
import { cancelJob, enqueue } from "./enqueue.ts";
import { publish } from "./publish.ts";

/** Effects of one run. Some join the commit and wait in the ledger; others happen immediately. */
export class RunEffects {
  readonly #run: EffectRun;
  #opening: Promise<Steps> | undefined;
  #steps: Steps | undefined;

  constructor(run: Omit<EffectRun, "cause">, cause: Omit<Cause, "originator">) {
    const originator = run.scope.isSystem ? "system" : undefined;
    this.#run = { ...run, cause: { ...cause, originator } };
  }

  of(caller: EffectCaller): Effects {
    const run = this.#run;
    const effects: Effects = {
      publish: (type, payload, options) => publish(run, caller, type, payload, options),
      enqueue: (name, payload, options) => enqueue(run, caller, name, payload, options),
      cancelJob: (jobId) => cancelJob(run, jobId),
      deliver: (channel, message, options) => deliver(run, caller, channel, message, options),
      count: async (quota, change) => {
        const attempt = run.ledger.start(caller, "quota.add", "add");
        run.ledger.hold(attempt, { kind: "quota", name: quota, change: await change() });
      },
      step: (name, options, call) => this.#step(caller, name, options, call),
    };
    return run.scope.spans?.producing(effects) ?? effects;
  }

  /** Whether the caller is inside a step, where a commit would deadlock: it waits for the step. */
  isInStep(): boolean {
    return this.#steps?.isInside() === true;
  }

  async #step(
    caller: EffectCaller,
    name: string,
    options: StepOptions,
    call: (key: string) => unknown,
  ): Promise<unknown> {
    const { scope, adapters, runs, run, ledger } = this.#run;
    const held = run.held();
    if (held === undefined) throw new Error(noClaim);
    const attempt = ledger.start(caller, "ctx.step", "begin a step");
    const joined = ledger.phase === "joining" ? attempt : 0;
    this.#opening ??= import("./open-steps.ts").then(({ openSteps }) =>
      openSteps(scope, adapters, runs, held),
    );
    this.#steps = await this.#opening;
    return this.#steps.step(name, options, call, joined);
  }
}

const noClaim =
  "ctx.step: nothing claims this run, so that no later one would know of the step; ask for an Idempotency-Key (`once: { required: true }`), or do it in a consumer or a job";
