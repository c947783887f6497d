import { rename, rm } from "node:fs/promises";
import { createPrivateFile, openPrivateFile } from "./private-file.ts";
import type { TenantAction } from "./receipt.ts";
import type { WalkState } from "./walk.ts";

/** Only a traversal with the same identity can resume another. */
export interface WalkIdentity {
  readonly action: TenantAction;
  readonly tenant: string;
  readonly tables: readonly string[];
}

interface KeptState {
  readonly state: WalkState;
  readonly bytes?: number;
}

export type StateFile = ReturnType<typeof stateFile>;

export function stateFile(path: string, { action, tenant, tables }: WalkIdentity) {
  const identity = { keelson: "tenant-state", format: 1, action, tenant, tables };
  return {
    /**
     * Returns the saved progress, or `undefined` if the file does not exist.
     * @throws Error if the file belongs to another traversal, or other users may write it.
     */
    read: async (): Promise<KeptState | undefined> => {
      const file = await openPrivateFile(path, "read").catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return undefined;
        throw error;
      });
      if (file === undefined) return undefined;
      const kept = parsed(await file.readFile("utf8").finally(() => file.close()));
      const isSame =
        kept !== undefined && JSON.stringify(kept.identity) === JSON.stringify(identity);
      if (!isSame)
        throw new Error(`${path} is not of this ${action}; remove it, or name another file`);
      return kept;
    },
    write: async (kept: KeptState) => {
      // Writes another file and renames it, so that a reader always finds a complete state.
      const file = await createPrivateFile(`${path}.new`);
      await file
        .writeFile(`${JSON.stringify({ identity, ...kept })}\n`)
        .finally(() => file.close());
      await rename(`${path}.new`, path);
    },
    remove: () => rm(path, { force: true }),
  };
}

function parsed(text: string): (KeptState & { readonly identity: unknown }) | undefined {
  try {
    const kept = JSON.parse(text);
    // Safe cast: only `write` makes files with this identity, which `read` checks.
    return typeof kept === "object" && kept !== null ? kept : undefined;
  } catch {
    return undefined;
  }
}
