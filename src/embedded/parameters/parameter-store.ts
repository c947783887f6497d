import { closeSync, fsyncSync, openSync, renameSync, writeFileSync } from "node:fs";
import { readIfPresent } from "../service/data-directory.ts";
import { byName } from "../service/service.ts";

export interface StoredParameter {
  readonly name: string;
  readonly type: ParameterType;
  readonly value: string;
  readonly version: number;
  /** Epoch seconds. */
  readonly modifiedAt: number;
  readonly description?: string | undefined;
  readonly keyId?: string | undefined;
}

export type ParameterType = "String" | "StringList" | "SecureString";

/** Opens a store that replaces its file with each change. @throws Error if the file is corrupt. */
export function openParameterStore(path?: string) {
  const stored = path === undefined ? [] : read(path);
  const parameters = new Map(stored.map((parameter) => [parameter.name, parameter]));
  const all = () => [...parameters.values()].sort(byName);
  const save = () => {
    if (path !== undefined) replace(path, JSON.stringify(all(), undefined, 2));
  };
  return {
    get: (name: string): StoredParameter | undefined => parameters.get(name),
    all,
    put(parameter: StoredParameter) {
      parameters.set(parameter.name, parameter);
      save();
    },
    delete(name: string) {
      parameters.delete(name);
      save();
    },
  };
}

function read(path: string) {
  const text = readIfPresent(path);
  if (text === undefined) return [];
  try {
    return JSON.parse(text) as StoredParameter[]; // only this module writes the file
  } catch (cause) {
    throw new Error(
      `${path} is not what the embedded stack wrote; delete it to begin with no parameters`,
      { cause },
    );
  }
}

function replace(path: string, text: string) {
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
