import { lazy } from "../process/lazy.ts";
import type { Claims, ClaimsOptions } from "./claims.ts";
import type { Once, OnceOptions } from "./once.ts";

/** Does writes once; what does it is loaded with the first, since a cold start waits for what it reads. */
export function openedOnce(options: OnceOptions): Once {
  const open = lazy(async () => (await import("./once.ts")).createOnce(options));
  return {
    run: async (...parameters) => (await open()).run(...parameters),
    pause: async (attempt) => (await open()).pause(attempt),
  };
}

/** Takes claims; what does it is loaded with the first. */
export function loadedClaims(options: ClaimsOptions): Claims {
  const open = lazy(async () => (await import("./claims.ts")).createClaims(options));
  return { take: async (...parameters) => (await open()).take(...parameters) };
}
