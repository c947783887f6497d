/**
 * Code of a Node error, such as `ENOENT`. Without `instanceof`: under Jest, Node's errors extend
 * another `Error`.
 */
export function systemCode(error: unknown): unknown {
  return typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
}
