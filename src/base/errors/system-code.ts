/** Returns a Node error's code, such as `ENOENT`. No `instanceof`, as Jest has another `Error`. */
export function systemCode(error: unknown): unknown {
  return typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
}
