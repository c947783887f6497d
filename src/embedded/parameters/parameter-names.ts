import { validationError } from "../service/operation.ts";
import { ServiceError } from "../service/service.ts";

const longestName = 1011;
const deepest = 15;

/** @throws ServiceError if a new name breaks a rule of Parameter Store. */
export function checkName(name: string): void {
  const wrong = wrongName(name);
  if (wrong !== undefined) throw validationError(wrong);
  if (name.split("/").length - 1 > deepest) {
    throw new ServiceError(
      "HierarchyLevelLimitExceededException",
      `A parameter name has at most ${deepest} levels`,
    );
  }
}

function wrongName(name: string) {
  if (!/^[a-zA-Z0-9_.\-/]+$/.test(name) || name.endsWith("/") || name.includes("//"))
    return "Parameter name: can't be empty, and has only letters, digits and the symbols _.-/, with something between slashes";
  if (name.length > longestName) return `Parameter name has more than ${longestName} characters`;
  if (name.includes("/") && !name.startsWith("/"))
    return "Parameter name must be a fully qualified name: one with a / begins with it";
  return /^\/?(aws|ssm)/i.test(name)
    ? 'Parameter name: can\'t be prefixed with "aws" or "ssm" (case-insensitive)'
    : undefined;
}

export function isUnder(name: string, path: string, isRecursive: boolean): boolean {
  const qualified = name.startsWith("/") ? name : `/${name}`;
  const prefix = path.endsWith("/") ? path : `${path}/`;
  return (
    qualified.startsWith(prefix) && (isRecursive || !qualified.slice(prefix.length).includes("/"))
  );
}
