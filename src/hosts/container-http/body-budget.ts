import { bodyLimit, type LimitedHandler, type Limits } from "../../parts/http/limits.ts";

const defaultBufferedBytes = 134_217_728;

/** Returns the most bytes of bodies that a container holds at a time. */
export function bodyBudget(
  limits: Limits | undefined,
  handlers: readonly LimitedHandler[],
): number {
  const largest = Math.max(bodyLimit(limits), ...handlers.map(({ bodyBytes = 0 }) => bodyBytes));
  return limits?.bufferedBytes ?? Math.max(defaultBufferedBytes, largest);
}
