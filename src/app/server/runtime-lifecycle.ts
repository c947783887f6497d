import type { LifecycleState } from "../../base/process/lifecycle.ts";
import type { Runtime } from "../runtime/runtime.ts";

/** The state of the process that a runtime lives in, as its host tells it. */
export function createLifecycle(): Runtime["lifecycle"] {
  const controller = new AbortController();
  // A Lambda function has no life of its own: it runs for as long as it is asked.
  let state: LifecycleState = "running";
  return {
    get state() {
      return state === "running" && controller.signal.aborted ? "draining" : state;
    },
    draining: controller.signal,
    drain: () => controller.abort(),
    enter: (entered) => {
      state = entered;
    },
  };
}
