import type { ClaimStore } from "./claim-store.ts";

/** A store that is opened with its first call. */
export function openedClaims(open: () => Promise<ClaimStore>): ClaimStore {
  return {
    take: async (...parameters) => (await open()).take(...parameters),
    read: async (...parameters) => (await open()).read(...parameters),
    renew: async (...parameters) => (await open()).renew(...parameters),
    complete: async (...parameters) => (await open()).complete(...parameters),
    release: async (...parameters) => (await open()).release(...parameters),
    commit: async (...parameters) => (await open()).commit(...parameters),
    putParts: async (...parameters) => (await open()).putParts(...parameters),
    readParts: async (...parameters) => (await open()).readParts(...parameters),
  };
}
