import { constants } from "node:fs";
import { type FileHandle, lstat, open, rename, rm } from "node:fs/promises";
import type { TenantAction } from "./receipt.ts";
import type { WalkState } from "./walk.ts";

/**
 * Opens the file `<path>.part`, which only its owner may read.
 *
 * @param bytes - number of bytes to keep of an interrupted export. Default: creates a new file.
 * @throws Error if the file has fewer bytes, or other users may read or write it.
 */
export async function openExportFile(path: string, bytes?: number) {
  const part = `${path}.part`;
  const file =
    bytes === undefined ? await createPrivateFile(part) : await openPrivateFile(part, "nothing");
  const { ino, size } = await file.stat();
  let written = bytes ?? 0;
  if (size < written) {
    await file.close();
    throw new Error(
      `${part} has less than the ${written} bytes that were written; remove the state, and start again`,
    );
  }
  await file.truncate(written);
  return {
    get bytes() {
      return written;
    },
    write: async (text: string) => {
      const bytes = Buffer.from(text);
      for (let from = 0; from < bytes.length; ) {
        const { bytesWritten } = await file.write(bytes, from, bytes.length - from, written);
        from += bytesWritten;
        written += bytesWritten;
      }
    },
    /** Renames the file to `path`. @throws Error if another export of this name has started. */
    finish: async () => {
      await file.datasync();
      await file.close();
      if ((await lstat(part)).ino !== ino)
        throw new Error(`${part} is another file by now: another export has started`);
      await rename(part, path);
    },
    /** A later export can continue the incomplete file. */
    close: () => file.close(),
  };
}

/** Only a traversal with the same identity can resume another. */
export interface WalkIdentity {
  readonly action: TenantAction;
  readonly tenant: string;
  readonly tables: readonly string[];
  /** Each Region may have tables of these names. */
  readonly region: string;
  /** Without a password: the file is not a secret. */
  readonly endpoint: string;
  readonly isEmbedded: boolean;
  /** Suspension of a registered tenant: it may have written rows since an earlier one. */
  readonly suspendedMs?: number | undefined;
}

interface KeptState {
  readonly state: WalkState;
  readonly bytes?: number;
}

export type StateFile = ReturnType<typeof stateFile>;

export function stateFile(path: string, identified: WalkIdentity) {
  const { action, tenant, tables, region, endpoint, isEmbedded, suspendedMs } = identified;
  const place = { tables, region, endpoint, isEmbedded };
  const identity = { keelson: "tenant-state", format: 1, action, tenant, ...place, suspendedMs };
  return {
    /** @throws Error if the file belongs to another traversal, or other users may write it. */
    read: async (): Promise<KeptState | undefined> => {
      const file = await openPrivateFile(path, "read").catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return undefined;
        throw error;
      });
      if (file === undefined) return undefined;
      const kept = parsed(await file.readFile("utf8").finally(() => file.close()));
      if (JSON.stringify(kept?.identity) !== JSON.stringify(identity))
        throw new Error(`${path} is not of this ${action}; remove it, or name another file`);
      return kept;
    },
    write: async (kept: KeptState) => {
      // A reader always finds a complete state.
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
    return Object(JSON.parse(text)); // safe: `read` checks the identity
  } catch {
    return undefined;
  }
}

/**
 * Creates or replaces a file that only its owner may read. Never writes through a link, or into a
 * file that another user has prepared under this name.
 *
 * @throws Error if another process creates it at the same time, or the old one cannot be removed.
 */
async function createPrivateFile(path: string): Promise<FileHandle> {
  // An existing file would keep its permissions and its readers.
  await rm(path, { force: true });
  return open(path, "wx", 0o600);
}

const forbidden = { nothing: 0o077, read: 0o022 } as const;

/**
 * Opens a file of {@link createPrivateFile} to read and write.
 *
 * @param others - access that other users may have. A copied file may have lost its mode.
 * @throws Error if it is a link, belongs to another user, or gives other users more access.
 */
async function openPrivateFile(path: string, others: keyof typeof forbidden): Promise<FileHandle> {
  const file = await open(path, constants.O_RDWR | noFollow).catch(
    (error: NodeJS.ErrnoException) => {
      throw error.code === "ELOOP"
        ? new Error(`${path} is a link; ${remedy}`, { cause: error })
        : error;
    },
  );
  try {
    const stats = await file.stat();
    if (!stats.isFile() || stats.nlink !== 1)
      throw new Error(`${path} is not a file with only one name; ${remedy}`);
    const isOurs =
      ownUser === undefined || (stats.uid === ownUser && (stats.mode & forbidden[others]) === 0);
    if (!isOurs) throw new Error(`${path} is accessible to other users; ${remedy}`);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

const remedy = "remove it and the state, and start again";

/* v8 ignore next -- Windows has no such flag, and few users there may create a link */
const noFollow = constants.O_NOFOLLOW ?? 0;
/** ID of the process's user. `undefined` on Windows, whose files have no mode. */
const ownUser = process.geteuid?.();
