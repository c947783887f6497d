/**
 * Returns the code of a Node error, such as `ENOENT`, or `undefined` for any other value. Does not
 * check the class: in a separate context, as under Jest, Node's errors extend a different `Error`.
 */
export function systemCode(error: unknown): unknown {
  return typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
}
