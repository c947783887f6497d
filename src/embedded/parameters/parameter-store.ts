import { closeSync, fsyncSync, openSync, renameSync, writeFileSync } from "node:fs";
import { readIfPresent } from "../service/data-directory.ts";
import { byName, ServiceError, validationError } from "../service/service.ts";

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

/** Replaces its file with each change. @throws Error if the file is corrupt. */
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
      `${path} was not written by the embedded stack; delete it to start without parameters`,
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

const longestName = 1011;
const deepest = 15;

export function checkName(name: string) {
  const wrong = wrongName(name);
  if (wrong !== undefined) throw validationError(wrong);
  if (name.split("/").length - 1 > deepest)
    throw new ServiceError(
      "HierarchyLevelLimitExceededException",
      `A parameter name has at most ${deepest} levels`,
    );
}

function wrongName(name: string) {
  if (!/^[a-zA-Z0-9_.\-/]+$/.test(name) || name.endsWith("/") || name.includes("//"))
    return "Parameter name: can't be empty, and has only letters, digits and the symbols _.-/, with something between slashes";
  if (name.length > longestName) return `Parameter name has more than ${longestName} characters`;
  if (name.includes("/") && !name.startsWith("/"))
    return "Parameter name must be a fully qualified name: a name with a / starts with a /";
  return /^\/?(aws|ssm)/i.test(name)
    ? 'Parameter name: can\'t be prefixed with "aws" or "ssm" (case-insensitive)'
    : undefined;
}

export function isUnder(name: string, path: string, isRecursive: boolean) {
  const qualified = name.startsWith("/") ? name : `/${name}`;
  const prefix = path.endsWith("/") ? path : `${path}/`;
  return (
    qualified.startsWith(prefix) && (isRecursive || !qualified.slice(prefix.length).includes("/"))
  );
}
