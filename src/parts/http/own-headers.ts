/** Headers that results and errors cannot set, because only keelson sets them. */
export const ownHeaders: readonly string[] = Object.freeze([
  "x-request-id",
  "x-keelson-config",
  "content-length",
  "transfer-encoding",
  "connection",
  "set-cookie",
]);

/** Whether this is a list of headers that a stored response can have. */
export function areReplayHeaders(names: unknown): names is readonly string[] {
  return (
    Array.isArray(names) &&
    names.every(
      (name) => typeof name === "string" && name !== "" && !ownHeaders.includes(name.toLowerCase()),
    )
  );
}
