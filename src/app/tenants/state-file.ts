import { rename, rm } from "node:fs/promises";
import { createPrivateFile, openPrivateFile } from "./private-file.ts";
import type { TenantAction } from "./receipt.ts";
import type { WalkState } from "./walk.ts";

/** What has to be the same for a walk to go on where another has ended. */
export interface WalkIdentity {
  readonly action: TenantAction;
  readonly tenant: string;
  /** The physical names, in their order. */
  readonly tables: readonly string[];
}

/** Where a walk stands. */
export interface KeptState {
  readonly state: WalkState;
  /** How many bytes of an export are written by then. */
  readonly bytes?: number;
}

/** A file that keeps where a walk stands. */
export interface StateFile {
  /** `undefined` where there is none yet. @throws Error where it is of another walk, or others may write it. */
  read(): Promise<KeptState | undefined>;
  write(kept: KeptState): Promise<void>;
  remove(): Promise<void>;
}

/** Creates a {@link StateFile}. */
export function stateFile(path: string, { action, tenant, tables }: WalkIdentity): StateFile {
  const identity = { keelson: "tenant-state", format: 1, action, tenant, tables };
  return {
    read: async () => {
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
    write: async (kept) => {
      // Whoever reads it finds one state or the next, whole.
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
    // Safe: what has the identity of a walk was written by `write`.
    return typeof kept === "object" && kept !== null
      ? (kept as KeptState & { readonly identity: unknown })
      : undefined;
  } catch {
    return undefined;
  }
}
