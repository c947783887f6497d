/**
 * The code of an error of Node's, such as `ENOENT`; `undefined` of anything else. The error's class is not asked: where
 * code runs in a context of its own, as under Jest, Node's errors are of another `Error`.
 */
export function systemCode(error: unknown): unknown {
  return typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
}
