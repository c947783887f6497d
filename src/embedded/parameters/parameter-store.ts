import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { systemCode } from "../../base/errors/system-code.ts";

/** A parameter as it is stored. */
export interface StoredParameter {
  readonly name: string;
  readonly type: ParameterType;
  /** Of a SecureString sealed, of any other type as it is. */
  readonly value: string;
  readonly version: number;
  /** Epoch seconds. */
  readonly modifiedAt: number;
  readonly description?: string;
  /** The key of KMS that it was put with. */
  readonly keyId?: string;
}

/** The types that Parameter Store knows. */
export type ParameterType = "String" | "StringList" | "SecureString";

/** The parameters by name, in a file where there is one. */
export interface ParameterStore {
  get(name: string): StoredParameter | undefined;
  /** All of them, by name. */
  all(): readonly StoredParameter[];
  put(parameter: StoredParameter): void;
  delete(name: string): void;
}

/**
 * Opens the store. A change is in the file before it is answered: the file is replaced as a whole,
 * so a crash leaves the one before or the one after.
 *
 * @throws Error where the file is not what was written.
 */
export function openParameterStore(path?: string): ParameterStore {
  const parameters = new Map(
    path === undefined ? [] : read(path).map((parameter) => [parameter.name, parameter]),
  );
  const all = () => [...parameters.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
  const save = () => {
    if (path !== undefined) replace(path, JSON.stringify(all(), undefined, 2));
  };
  return {
    get: (name) => parameters.get(name),
    all,
    put(parameter) {
      parameters.set(parameter.name, parameter);
      save();
    },
    delete(name) {
      parameters.delete(name);
      save();
    },
  };
}

function read(path: string): StoredParameter[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (systemCode(error) === "ENOENT") return [];
    throw error;
  }
  try {
    return JSON.parse(text) as StoredParameter[]; // this module alone writes the file
  } catch (cause) {
    throw new Error(
      `${path} is not what the embedded stack wrote; delete it to begin with no parameters`,
      { cause },
    );
  }
}

function replace(path: string, text: string): void {
  const draft = `${path}.draft`;
  const file = openSync(draft, "w", 0o600);
  try {
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(draft, path);
}
