import { BootError } from "../../base/errors/boot.ts";
import { bodyLimit, type Limits } from "../../parts/http/limits.ts";

const defaultBufferedBytes = 134_217_728;

/** A handler, with the largest body that it declares. */
export interface LimitedHandler {
  readonly name: string;
  readonly bodyBytes?: number | undefined;
}

/**
 * Returns the most bytes of bodies that a container holds at a time.
 *
 * @throws BootError if that is less than the largest body of a handler.
 */
export function bodyBudget(
  limits: Limits | undefined,
  handlers: readonly LimitedHandler[],
): number {
  const largest = Math.max(bodyLimit(limits), ...handlers.map(({ bodyBytes = 0 }) => bodyBytes));
  const budget = limits?.bufferedBytes ?? Math.max(defaultBufferedBytes, largest);
  if (budget >= largest) return budget;
  const problems = handlers
    .filter(({ bodyBytes = 0 }) => budget < bodyBytes)
    .map(({ name, bodyBytes }) => ({
      feature: "",
      key: "limits.bufferedBytes",
      rule: "limits-order" as const,
      message: `${budget} is below ${name}.limits.bodyBytes, ${bodyBytes}`,
      fix: `use ${bodyBytes} or more, or lower the limit of the handler`,
    }));
  throw new BootError(problems);
}
