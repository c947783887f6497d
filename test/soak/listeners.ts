import { getEventListeners } from "node:events";

/** Targets that have had a listener. They may be collected. */
const targets = new Set<WeakRef<EventTarget>>();
const known = new WeakSet<EventTarget>();
const collected = new FinalizationRegistry<WeakRef<EventTarget>>((target) =>
  targets.delete(target),
);

// Safe: the arguments are passed on unchanged.
const add = EventTarget.prototype.addEventListener as (...given: unknown[]) => void;
EventTarget.prototype.addEventListener = function (this: EventTarget, ...given: unknown[]) {
  if (!known.has(this)) {
    known.add(this);
    const target = new WeakRef(this);
    targets.add(target);
    collected.register(this, target);
  }
  add.apply(this, given);
};

/**
 * Returns the number of listeners for an abort that this process holds, since this module was loaded. A signal of a request
 * is collected with the request; a signal that lives as long as the process keeps each listener that is not removed.
 */
export function countListeners(): number {
  let count = 0;
  for (const reference of targets) {
    const target = reference.deref();
    if (target !== undefined) count += getEventListeners(target, "abort").length;
  }
  return count;
}
