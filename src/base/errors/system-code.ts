/** Code of a Node error, such as `ENOENT`. No `instanceof`: Jest has another `Error`. */
export function systemCode(error: unknown): unknown {
  return typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
}
