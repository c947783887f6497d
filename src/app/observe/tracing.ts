import type { MessageQueue } from "../../parts/messages/message-queue.ts";
import type { EventBus } from "../../parts/messages/outbox.ts";
import { around } from "./around.ts";
import { post, tracedBus, tracedQueue } from "./client-spans.ts";
import { SpansOfRun } from "./run-spans.ts";
import { fail } from "./span-failure.ts";
import type { Origin, RunSpans, RunSubject, TracedRun, Tracing } from "./spans.ts";
import { spanKinds, Tracer } from "./tracer.ts";

export function createTracing(): Tracing {
  return new TracerSpans();
}

class TracerSpans implements Tracing {
  readonly #tracer = new Tracer();

  spansOf(scope: TracedRun, origin: () => Origin, subject: RunSubject | undefined): RunSpans {
    return new SpansOfRun(this.#tracer, scope, origin, subject);
  }

  around<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    return around(
      this.#tracer,
      this.#tracer.active(),
      { name, kind: spanKinds.internal },
      work,
      (span, error) => fail(span, error, true),
    );
  }

  posting(url: URL, send: Parameters<Tracing["posting"]>[1]): Promise<number> {
    return post(this.#tracer, url, send);
  }

  bus(bus: EventBus): EventBus {
    return tracedBus(this.#tracer, bus);
  }

  queue(queue: MessageQueue): Pick<MessageQueue, "send" | "isFinal"> {
    return tracedQueue(this.#tracer, queue);
  }
}
